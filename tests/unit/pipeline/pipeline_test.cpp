// Pipelines by the public interface, on the host.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using weir::into;
using weir::Outlet;
using weir::Pipeline;
using weir::PipelineOptions;
using weir::Runtime;
using weir::StageContext;
using Items = std::uint64_t;

struct Pipelines : testing::Test {
  Runtime runtime{"host"};
};

/// A source of 0, 1, ... count - 1.
auto numbers(std::uint64_t count) {
  return [count, next = std::uint64_t{0}](const Outlet<std::uint64_t>& out) mutable {
    if (next < count) out.put(next++);
    return next < count;
  };
}

template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const weir::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Pipelines, ThreeStagesSeeEveryItemOnce) {
  constexpr std::uint64_t kCount = 100'000;
  std::atomic<std::uint64_t> sum{0}, count{0};
  const Pipeline pipeline(runtime);
  const auto raw = pipeline.tunnel<std::uint64_t>("raw");
  const auto squares = pipeline.tunnel<std::uint64_t>("squares");
  pipeline.source("numbers", into(raw), numbers(kCount));
  pipeline.stage("square", raw, into(squares),
                 [](std::uint64_t x, const Outlet<std::uint64_t>& out) { out.put(x * x); });
  pipeline.stage("sum", squares, [&](std::uint64_t x) {
    sum += x;
    ++count;
  });
  pipeline.run();
  EXPECT_EQ(count, kCount);
  EXPECT_EQ(sum, (kCount - 1) * kCount * (2 * kCount - 1) / 6);
  for (const weir_stage_info& stage : pipeline.stages()) {
    EXPECT_EQ(stage.created, kCount) << stage.name;
    EXPECT_EQ(stage.complete, kCount) << stage.name;
    EXPECT_TRUE(stage.at_end);
  }
}

TEST_F(Pipelines, RecursionStaysWithinItsBound) {
  struct Task {
    std::uint32_t depth, unused[7];
  };
  constexpr std::uint32_t kRoots = 64, kDepth = 10, kBatch = 16;
  std::atomic<std::uint64_t> leaves{0};
  PipelineOptions options;
  options.batch = kBatch;
  const Pipeline pipeline(runtime, options);
  const auto tasks = pipeline.tunnel<Task>("tasks", {.capacity = 4});
  const auto done = pipeline.tunnel<Task>("done", {.capacity = 4});
  pipeline.source("roots", into(tasks), [n = 0u](const Outlet<Task>& out) mutable {
    out.put({0, {}});
    return ++n < kRoots;
  });
  pipeline.stage("split", tasks, into(tasks, done),
                 [](const Task& task, const Outlet<Task>& again, const Outlet<Task>& leaf) {
                   if (task.depth == kDepth) return leaf.put(task);
                   again.put({task.depth + 1, {}});
                   again.put({task.depth + 1, {}});
                 });
  pipeline.stage("count", done, [&](const Task&) { ++leaves; });
  pipeline.run();
  EXPECT_EQ(leaves, std::uint64_t{kRoots} << kDepth);
  const auto stages = pipeline.stages();
  EXPECT_EQ(stages[0].complete, kRoots * ((std::uint64_t{2} << kDepth) - 1));
  EXPECT_LE(stages[0].most_kept, kBatch * (kDepth + 1) + 2 * kBatch);
}

TEST_F(Pipelines, FeedsWaitForRoomAndCloseExactly) {
  constexpr std::uint64_t kEach = 5'000;
  std::atomic<std::uint64_t> sum{0};
  const Pipeline pipeline(runtime);
  const auto numbers = pipeline.tunnel<std::uint64_t>("numbers", {.capacity = 3});
  pipeline.stage("sum", numbers, [&](std::uint64_t x) { sum += x; });
  auto one = pipeline.feed(numbers), two = pipeline.feed(numbers);
  pipeline.start();
  const auto put_all = [&](weir::Feed<std::uint64_t>& feed) {
    for (std::uint64_t i = 1; i <= kEach; ++i) feed.put(i);
    feed.close();
  };
  std::thread other([&] { put_all(one); });
  put_all(two);
  other.join();
  pipeline.wait();
  EXPECT_EQ(sum, kEach * (kEach + 1));
}

}  // namespace
