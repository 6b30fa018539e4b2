// The bound on what is in flight: submitting threads help and wait, kernels and callbacks do not.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "gate.hpp"
#include "surroundings.hpp"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr const char* kVirtual =
    "sim:cores=1,clock=virtual,latency_us=0,sim:cores=1,clock=virtual,latency_us=0";

std::uint64_t in_flight(const Runtime& runtime) {
  const weir_stats stats = runtime.stats();
  return stats.actions_enqueued - stats.actions_completed;
}

weir_queue_info info_of(const Queue& queue) {
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  check(weir_queue_get_info(queue.handle(), &info, nullptr, 0));
  return info;
}

Queue bounded_queue(const Runtime& runtime, std::size_t most) {
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.no_models = true;
  options.max_in_flight = most;
  return runtime.queue(options);
}

/// Time passes only when a thread of the program waits, so nothing ends before the bound.
TEST(InFlight, FullStream_EnqueuePollsAndNeverExceedsTheBound) {
  Runtime runtime(kVirtual);
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.max_in_flight = 8});
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  const Buffer buffer = runtime.buffer(64);
  std::uint64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    stream.compute(nothing, {readwrite(buffer.all())});
    most = std::max(most, in_flight(runtime));
  }
  EXPECT_EQ(most, 8u);
  stream.synchronize();
}

TEST(InFlight, FullQueue_SubmitPollsAndNeverExceedsTheBound) {
  Runtime runtime(kVirtual);
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  const Buffer buffer = runtime.buffer(64);
  const Queue queue = bounded_queue(runtime, 16);
  EXPECT_EQ(info_of(queue).max_in_flight, 16u);
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    queue.submit(nothing, {readwrite(buffer.range(i % 4 * 16, 16))});
    const weir_queue_info info = info_of(queue);
    most = std::max(most, info.submitted - info.completed);
  }
  EXPECT_EQ(most, 16u);
  queue.synchronize();
}

TEST(InFlight, EnqueueAtTheBound_ReturnsWhenAnEighthIsComplete) {
  Runtime runtime(kVirtual);
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.max_in_flight = 64});
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  const Buffer buffer = runtime.buffer(64);
  for (int i = 0; i < 64; ++i) stream.compute(nothing, {readwrite(buffer.all())});
  EXPECT_EQ(in_flight(runtime), 64u);
  stream.compute(nothing, {readwrite(buffer.all())});
  EXPECT_LE(in_flight(runtime), 57u);
  stream.synchronize();
}

TEST(InFlight, FullHostStream_EnqueueBlocksUntilAWorkerCompletes) {
  Gate gate;
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.max_in_flight = 4});
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  gate.close(runtime, stream);
  std::atomic<std::uint64_t> most{0};
  std::atomic<int> enqueued{0};
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) {
      stream.compute(nothing, {});
      enqueued = i + 1;
      most = std::max(most.load(), in_flight(runtime));
    }
  });
  while (enqueued < 3) std::this_thread::yield();
  gate.open();
  producer.join();
  EXPECT_LE(most, 4u);
  stream.synchronize();
}

TEST(InFlight, SubmitFromKernelOrCallbackAtTheBound_DoesNotBlock) {
  for (const char* const domains : {"host:cores=1", "host:cores=1,sim:cores=1,latency_us=0"}) {
    Runtime runtime(domains);
    const Queue queue = bounded_queue(runtime, 2);
    std::atomic<int> ran{0};
    const Kernel nothing = runtime.kernel("nothing", [&](const Call&) { ++ran; });
    const Kernel submits = runtime.kernel("submits", [&](const Call&) {
      for (int i = 0; i < 50; ++i) queue.submit(nothing, {});
    });
    const Event event = queue.submit(submits, {});
    event.on_complete([&](weir_status, const std::string&) {
      for (int i = 0; i < 50; ++i) queue.submit(nothing, {});
    });
    event.wait();
    while (ran < 100) queue.synchronize();
    EXPECT_EQ(ran, 100) << domains;
  }
}

TEST(InFlight, CancelWhileAnotherThreadEnqueues_DoesNotHang) {
  Gate gate;
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream stream = place.stream({.max_in_flight = 4});
  const Kernel nothing = runtime.kernel("nothing", [](const Call&) {});
  gate.close(runtime, stream);
  std::atomic<bool> over{false};
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) stream.compute(nothing, {});
    over = true;
  });
  gate.open();
  while (!over) {
    stream.cancel();
    std::this_thread::yield();
  }
  producer.join();
  stream.synchronize();
}

TEST(InFlight, BoundOfOneWithCrossStreamWaits_RunsAllActions) {
  Runtime runtime("host");
  const Place place = runtime.domain(0).place(1);
  const Stream first = place.stream({.max_in_flight = 1}),
               second = place.stream({.max_in_flight = 1});
  std::atomic<int> ran{0};
  const Kernel count = runtime.kernel("count", [&](const Call&) { ++ran; });
  for (int i = 0; i < 50; ++i) {
    second.wait(first.compute(count, {}));
    first.wait(second.compute(count, {}));
  }
  runtime.synchronize();
  EXPECT_EQ(ran, 100);
}

#if defined(__GLIBC__) && !defined(WEIR_SANITIZED)
/// Bytes that a task takes which cannot run yet, as one of 20,000.
double bytes_of_task(const char* domains) {
  constexpr std::size_t kTasks = 20'000, kRegions = 64, kBytes = 16;
  Gate gate;
  Runtime runtime(domains);
  const Queue queue = bounded_queue(runtime, 2 * kTasks);
  const Kernel kernel = runtime.kernel("nothing", [](const Call&) {});
  const Buffer buffer = runtime.buffer(kRegions * kBytes);
  std::atomic<bool> open{false};
  const Kernel wait = runtime.kernel("wait", [&](const Call&) { open.wait(false); });
  queue.submit(wait, {write(buffer.all())});
  const auto part = [&](std::size_t i) { return buffer.range(i % kRegions * kBytes, kBytes); };
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double before = in_use();
  for (std::size_t i = 0; i < kTasks; ++i) {
    queue.submit(kernel, {readwrite(part(i)), read(part(i + 1)), read(part(i + 2))}, {1.0});
  }
  const double bytes = (in_use() - before) / kTasks;
  open = true;
  open.notify_all();
  queue.synchronize();
  return bytes;
}

TEST(InFlight, PendingTask_TakesAtMost270Bytes) {
  EXPECT_LE(bytes_of_task("host:cores=1"), 270);
  EXPECT_LE(bytes_of_task("host:cores=1,sim:cores=1,latency_us=0"), 256);
}
#endif

TEST(InFlight, EnvironmentVariable_SetsTheDefaultBoundAndIsValidated) {
  {
    Runtime runtime("host");
    EXPECT_EQ(info_of(bounded_queue(runtime, 0)).max_in_flight, 65536u);
  }
  {
    const EnvironmentVariable bound("WEIR_MAX_IN_FLIGHT", "12");
    Runtime runtime("host");
    EXPECT_EQ(info_of(bounded_queue(runtime, 0)).max_in_flight, 12u);
    EXPECT_EQ(info_of(bounded_queue(runtime, 5)).max_in_flight, 5u);
  }
  for (const char* const wrong : {"0", "many", "-1"}) {
    const EnvironmentVariable bound("WEIR_MAX_IN_FLIGHT", wrong);
    EXPECT_EQ(status_of([] { Runtime runtime("host"); }), WEIR_STATUS_INVALID_ARGUMENT) << wrong;
  }
}

}  // namespace
}  // namespace weir
