// Misuse, failures and races that once lost something, crashed or leaked.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <weir/weir.hpp>

#include "gate.hpp"
#include "surroundings.hpp"

namespace weir {
namespace {

using std::chrono::milliseconds;

TEST(Robustness, SynchronizeTimesOut_NextOneReportsTheFailure) {
  Gate gate;
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Kernel fails = runtime.kernel("fails", [](Call&) { throw std::runtime_error("boom"); });
  gate.close(runtime, stream);
  stream.compute(fails, {});
  EXPECT_EQ(status_of([&] { stream.synchronize(milliseconds(1)); }), WEIR_STATUS_TIMEOUT);
  gate.open();
  EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_OK);
}

TEST(Robustness, StreamOfATemporaryPlace_KeepsThePlaceAlive) {
  const Runtime runtime("host:cores=1");
  int value = 0;
  const Kernel set = runtime.kernel("set", [&](Call&) { ++value; });
  {
    Stream stream = runtime.domain(0).place().stream();
    stream.compute(set, {});
    Stream moved = std::move(stream);
    moved.compute(set, {});
    moved.synchronize();
    moved = {};
    moved = runtime.domain(0).place(1).stream();  // the core is free again
    moved.compute(set, {});
    moved.synchronize();
  }
  EXPECT_EQ(value, 3);
  EXPECT_NO_THROW(runtime.domain(0).place(1));
}

TEST(Robustness, DeviceOutOfMemory_NamesTheLargestBuffers) {
  const Runtime runtime("sim:cores=1,fail_allocation=3");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer small = runtime.buffer(64, "small"), large = runtime.buffer(4096, "large"),
               more = runtime.buffer(64, "more");
  stream.upload(small.all());
  stream.upload(large.all());
  stream.synchronize();
  const Event event = stream.upload(more.all());
  EXPECT_EQ(status_of([&] { event.wait(); }), WEIR_STATUS_OUT_OF_MEMORY);
  const std::string message = event.info().message;
  EXPECT_NE(message.find("has no memory left, at its allocation 3; largest there: 'large' 4 KiB, "
                         "'small' 64 B"),
            std::string::npos)
      << message;
  EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_OUT_OF_MEMORY);
  stream.upload(more.all()).wait();
}

TEST(Robustness, NullArrayWithANonzeroCount_IsRefused) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel_name = "mem.set";
  compute.operand_count = 1;
  EXPECT_EQ(weir_stream_compute(stream.handle(), &compute, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "1 operand is given as NULL");
  compute.operand_count = 0;
  compute.scalar_count = 2;
  EXPECT_EQ(weir_stream_compute(stream.handle(), &compute, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  weir_sync sync = WEIR_SYNC_INIT;
  sync.event_count = 3;
  EXPECT_EQ(weir_stream_sync(stream.handle(), &sync, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "3 events are given as NULL");
}

TEST(Robustness, RuntimeDestroyedBeforeItsBuffers_ReturnsTheirMemory) {
#ifdef WEIR_SANITIZED
  GTEST_SKIP() << "sanitizers keep memory that was returned";
#endif
  const auto mapped_pages = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    return pages;
  };
  constexpr std::size_t kBytes = std::size_t{64} << 20, kPageBytes = 4096;
  const auto round = [&] {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "sim:cores=1";
    weir_runtime* runtime = nullptr;
    weir_place* place = nullptr;
    weir_stream* stream = nullptr;
    weir_buffer* buffer = nullptr;
    check(weir_runtime_create(&options, &runtime));
    check(weir_place_create(weir_runtime_get_domain(runtime, 0), nullptr, &place));
    check(weir_stream_create(place, nullptr, &stream));
    check(weir_buffer_create(runtime, kBytes, nullptr, &buffer));
    check(weir_stream_upload(stream, buffer, weir_region_range(0, 64), nullptr));
    check(weir_stream_synchronize(stream, WEIR_FOREVER));
    weir_runtime_destroy(runtime);
  };
  round();
  const std::size_t before = mapped_pages();
  for (int i = 0; i < 4; ++i) round();
  EXPECT_LT(mapped_pages(), before + kBytes / kPageBytes);
}

TEST(Robustness, FailMessageOfASuccessfulCall_IsDiscarded) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Kernel changes_its_mind = runtime.kernel("changes its mind", [](Call& call) {
    weir_call_fail(call.handle(), WEIR_STATUS_KERNEL_ERROR, "old news");
  });
  const weir_implementation silent = {
      "host", [](const weir_call*) { return WEIR_STATUS_DEVICE_ERROR; }, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "silent";
  options.implementations = &silent;
  options.implementation_count = 1;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &kernel));
  stream.compute(changes_its_mind, {});
  stream.compute(Kernel(kernel), {});
  EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_DEVICE_ERROR);
  EXPECT_EQ(std::string(weir_last_error()).find("old news"), std::string::npos);
}

TEST(Robustness, KernelThatClaimsCancellation_FailsWithAKernelError) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer buffer = runtime.buffer(64);
  const Kernel claims = runtime.kernel("claims", [](Call& call) {
    throw Error(weir_call_fail(call.handle(), WEIR_STATUS_CANCELLED, "no"), "no");
  });
  const Kernel reads = runtime.kernel("reads", [](Call&) {});
  stream.compute(claims, {write(buffer.all())});
  const Event dependent = stream.compute(reads, {read(buffer.all())});
  EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(dependent.info().status, WEIR_STATUS_POISONED);
}

TEST(Robustness, KernelWithAnUnknownOrRepeatedBackend_IsRefused) {
  const Runtime runtime("host:cores=1");
  const weir_implementation typo = {"hots", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  const weir_implementation twice[] = {{"host", typo.function, nullptr},
                                       {"host", typo.function, nullptr}};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "k";
  options.implementations = &typo;
  options.implementation_count = 1;
  EXPECT_EQ(weir_kernel_register(runtime.handle(), &options, nullptr),
            WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(weir_last_error()).find("'hots' (did you mean 'host'"), std::string::npos)
      << weir_last_error();
  options.implementations = twice;
  options.implementation_count = 2;
  EXPECT_EQ(weir_kernel_register(runtime.handle(), &options, nullptr),
            WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(Robustness, Barrier_ExtendsTheCriticalPathOfItsSlowestPredecessor) {
  const Runtime runtime("sim:clock=virtual,cores=2,gflops=1,kernels=skip");
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  const Buffer buffer = runtime.buffer(64);
  const weir_implementation nothing = {"sim", [](const weir_call*) { return WEIR_STATUS_OK; },
                                       nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "work";
  options.implementations = &nothing;
  options.implementation_count = 1;
  options.cost = [](const weir_call* call) { return weir_cost{call->scalars[0].value.f64, 0}; };
  weir_kernel* made = nullptr;
  check(weir_kernel_register(runtime.handle(), &options, &made));
  const Kernel work(made);
  runtime.start_trace();
  stream.compute(work, {write(buffer.range(0, 8))}, {10e6});
  stream.compute(work, {write(buffer.range(8, 8))}, {1e6});
  stream.barrier();
  stream.compute(work, {write(buffer.range(8, 8))}, {10e6});
  stream.synchronize();
  const weir_trace_summary summary = runtime.trace_summary();
  EXPECT_DOUBLE_EQ(summary.measured_s, 20e-3);
  EXPECT_DOUBLE_EQ(summary.critical_path_s, 20e-3);
}

TEST(Robustness, StreamsDestroyedDuringConcurrentSynchronize_DoNotHang) {
  const Runtime runtime("host:cores=1");
  const Place place = runtime.domain(0).place();
  const Kernel nothing = runtime.kernel("nothing", [](Call&) {});
  std::atomic<bool> over{false};
  std::thread synchronising([&] {
    while (!over) runtime.synchronize();
  });
  std::thread destroying([&] {
    while (!over) {
      const Buffer buffer = runtime.buffer(64);
      place.stream().compute(nothing, {write(buffer.all())});
    }
  });
  for (int i = 0; i < 500; ++i) place.stream().compute(nothing, {});
  over = true;
  synchronising.join();
  destroying.join();
}

TEST(Robustness, InvalidEnvironmentVariable_IsRefusedByName) {
  const auto opened_with = [](const char* variable, const char* value) {
    const EnvironmentVariable set(variable, value);
    const weir_status status = status_of([] { Runtime runtime("host:cores=1"); });
    return status == WEIR_STATUS_INVALID_ARGUMENT ? std::string(weir_last_error())
                                                  : weir_status_name(status);
  };
  EXPECT_EQ(opened_with("WEIR_SPIN_US", "soon"),
            "WEIR_SPIN_US is 'soon': expected a number of microseconds");
  EXPECT_EQ(opened_with("WEIR_SPIN_US", ""), "ok");
  // Those of fabrics, too, though the runtime is in none.
  EXPECT_EQ(opened_with("WEIR_TRANSPORT", "tcp"),
            "WEIR_TRANSPORT is 'tcp': choose from auto, self, shm, mpi, ucx");
  EXPECT_EQ(opened_with("WEIR_PROGRESS", "never"),
            "WEIR_PROGRESS is 'never': choose from thread, caller, hybrid");
  EXPECT_EQ(opened_with("WEIR_LOST_AFTER_MS", "1s"),
            "WEIR_LOST_AFTER_MS is '1s': expected a number of milliseconds, from 1 to 2147483647");
  EXPECT_EQ(opened_with("WEIR_RANK", "first"),
            "WEIR_RANK is 'first': start ranks with weir run --ranks");
  EXPECT_EQ(opened_with("WEIR_LOST_AFTER_MS", "1000"), "ok");
}

}  // namespace
}  // namespace weir
