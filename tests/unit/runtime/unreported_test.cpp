// Failures that the program does not ask for are logged, once each.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include <weir/pipeline.hpp>

#include "gate.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// What is on standard error after code().
template <class Code>
std::string said_by(Code&& code) {
  testing::internal::CaptureStderr();
  code();
  return testing::internal::GetCapturedStderr();
}

class UnreportedTest : public testing::Test {
 protected:
  static Kernel bad_in(const Runtime& runtime) {
    return runtime.kernel("bad", [](const Call&) { throw std::runtime_error("no luck"); });
  }
  static Queue queue_in(const Runtime& runtime) {
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.no_models = true;
    options.name = "lonely";
    return runtime.queue(options);
  }
};

TEST_F(UnreportedTest, StreamDestroyedWithAFailure_LogsItOnce) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Kernel bad = bad_in(runtime);
  const std::string said = said_by([&] {
    const Stream stream = place.stream({.name = "lonely"});
    stream.compute(bad, {});
    stream.compute(bad, {});
  });
  EXPECT_EQ(count_of(said, "no luck"), 1u) << said;
  EXPECT_NE(said.find("stream 'lonely'"), std::string::npos) << said;
  EXPECT_NE(said.find("1 more"), std::string::npos) << said;
}

TEST_F(UnreportedTest, ExternalActionThrowsAndNothingWaits_LogsItOnce) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const std::string said = said_by([&] {
    const Stream stream = place.stream({.name = "lonely"});
    stream.external({}, [](const ExternalAction&, std::span<const weir_view>) {
      throw std::runtime_error("no luck");
    });
    stream.external({}, [](const ExternalAction& action, std::span<const weir_view>) {
      action.complete();
      throw std::runtime_error("too late");
    });
  });
  EXPECT_EQ(count_of(said, "no luck"), 1u) << said;
  EXPECT_EQ(count_of(said, "too late"), 0u) << said;
}

TEST_F(UnreportedTest, QueueDestroyedWithAFailure_LogsItOnce) {
  for (const char* const domains : {"host:cores=2", "host:cores=1,sim:cores=1,latency_us=0"}) {
    Runtime runtime(domains);
    const Kernel bad = bad_in(runtime);
    const Buffer buffer = runtime.buffer(8);
    const std::string said = said_by([&] {
      const Queue queue = queue_in(runtime);
      for (int i = 0; i < 6; ++i) queue.submit(bad, {readwrite(buffer.all())});
    });
    EXPECT_EQ(count_of(said, "no luck"), 1u) << said;
    EXPECT_NE(said.find("queue 'lonely'"), std::string::npos) << said;
  }
}

TEST_F(UnreportedTest, RuntimeDestroyedWithAFailure_LogsItOnce) {
  const std::string said = said_by([] {
    weir_runtime* runtime = nullptr;
    check(weir_runtime_create(nullptr, &runtime));
    weir_place* place = nullptr;
    check(weir_place_create(weir_runtime_get_domain(runtime, 0), nullptr, &place));
    weir_stream* stream = nullptr;
    check(weir_stream_create(place, nullptr, &stream));
    const weir_host_function function = [](const weir_call*) { return WEIR_STATUS_DEVICE_ERROR; };
    const weir_implementation code = {"host", function, nullptr};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = "bad";
    options.implementations = &code;
    options.implementation_count = 1;
    check(weir_kernel_register(runtime, &options, nullptr));
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel_name = "bad";
    check(weir_stream_compute(stream, &compute, nullptr));
    weir_runtime_destroy(runtime);
  });
  EXPECT_EQ(count_of(said, "'bad'"), 1u) << said;
}

TEST_F(UnreportedTest, FailureReportedToTheProgram_IsNotLogged) {
  const std::string said = said_by([] {
    Runtime runtime("host");
    const Place place = runtime.domain(0).place(1);
    const Kernel bad = bad_in(runtime);
    const Buffer buffer = runtime.buffer(8);
    std::atomic<bool> called{false};
    {
      const Stream stream = place.stream();
      stream.compute(bad, {});
      EXPECT_EQ(status_of([&] { stream.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
    }
    {
      const Stream stream = place.stream();
      const Event event = stream.compute(bad, {});
      EXPECT_EQ(status_of([&] { event.wait(); }), WEIR_STATUS_KERNEL_ERROR);
    }
    {
      const Stream stream = place.stream();
      const Event event = stream.compute(bad, {});
      while (!event.complete()) std::this_thread::yield();
      EXPECT_EQ(event.info().status, WEIR_STATUS_KERNEL_ERROR);
    }
    {
      const Stream stream = place.stream();
      stream.compute(bad, {}).on_complete([&](weir_status, const std::string&) { called = true; });
      while (!called) std::this_thread::yield();
    }
    {
      const Stream stream = place.stream();
      stream.compute(bad, {write(buffer.all())});
      const Event poisoned = stream.compute(bad, {read(buffer.all())});
      EXPECT_EQ(status_of([&] { poisoned.wait(); }), WEIR_STATUS_POISONED);
    }
    const Queue queue = queue_in(runtime);
    queue.submit(bad, {});
    EXPECT_EQ(status_of([&] { queue.synchronize(); }), WEIR_STATUS_KERNEL_ERROR);
  });
  EXPECT_EQ(said, "");
}

TEST_F(UnreportedTest, CancelledActions_AreNotLogged) {
  const std::string said = said_by([] {
    Gate gate;
    Runtime runtime("host");
    const Place place = runtime.domain(0).place(1);
    const Stream stream = place.stream();
    gate.close(runtime, stream);
    stream.compute(bad_in(runtime), {});
    stream.cancel();
    gate.open();
  });
  EXPECT_EQ(said, "");
}

TEST_F(UnreportedTest, SynchronizeTimesOut_LaterFailureIsLogged) {
  const std::string said = said_by([] {
    Gate gate;
    Runtime runtime("host");
    const Place place = runtime.domain(0).place(1);
    const Stream stream = place.stream();
    gate.close(runtime, stream);
    stream.compute(bad_in(runtime), {});
    EXPECT_EQ(status_of([&] { stream.synchronize(1ms); }), WEIR_STATUS_TIMEOUT);
    gate.open();
  });
  EXPECT_EQ(count_of(said, "no luck"), 1u) << said;
}

TEST_F(UnreportedTest, ShareDestroyedWithoutWait_LogsItsFailureOnce) {
  Runtime runtime("host");
  const Kernel bad = bad_in(runtime);
  const std::string said = said_by([&] {
    const Share share =
        runtime.share(8, [&](const Chunk& chunk) { return chunk.stream.compute(bad, {}); });
  });
  EXPECT_EQ(count_of(said, "no luck"), 1u) << said;
  EXPECT_NE(said.find("share"), std::string::npos) << said;
  const std::string told = said_by([&] {
    const Share share =
        runtime.share(8, [&](const Chunk& chunk) { return chunk.stream.compute(bad, {}); });
    EXPECT_EQ(status_of([&] { share.wait(); }), WEIR_STATUS_KERNEL_ERROR);
  });
  EXPECT_EQ(told, "");
}

/// Fails in a runtime that lives until the process exits.
void exit_without_closing() {
  weir_runtime* runtime = nullptr;
  check(weir_runtime_create(nullptr, &runtime));
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.no_models = true;
  options.name = "forgotten";
  weir_queue* queue = nullptr;
  check(weir_queue_create(runtime, &options, &queue));
  const weir_host_function function = [](const weir_call*) { return WEIR_STATUS_DEVICE_ERROR; };
  const weir_implementation code = {"host", function, nullptr};
  weir_kernel_options kernel = WEIR_KERNEL_OPTIONS_INIT;
  kernel.name = "bad";
  kernel.implementations = &code;
  kernel.implementation_count = 1;
  check(weir_kernel_register(runtime, &kernel, nullptr));
  weir_task task = WEIR_TASK_INIT;
  task.kernel_name = "bad";
  check(weir_queue_submit(queue, &task, nullptr));
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  while (info.completed == 0) check(weir_queue_get_info(queue, &info, nullptr, 0));
  std::exit(0);
}

TEST_F(UnreportedTest, ProcessExitsWithoutClosing_LogsTheFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(exit_without_closing(), testing::ExitedWithCode(0), "queue 'forgotten'.*'bad'");
}

}  // namespace
}  // namespace weir
