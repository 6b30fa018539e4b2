// The interface of HiWayLib: programs written with its verbs.
#include <hiway/hiway.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "thrown.hpp"

namespace hiway {
namespace {

using HiWayLib::createTunnel;
using HiWayLib::endFlag_h;
using HiWayLib::endTask_h;
using HiWayLib::get_h;
using HiWayLib::isTerminate_h;
using HiWayLib::put_h;
using HiWayLib::setupService;
using HiWayLib::shutdownService;
using weir::thrown_by;
using Number = std::uint64_t;

/// Threads that take items of a tunnel until the end.
template <class Item>
class Consumers {
 public:
  Consumers(std::size_t count, int tunnel, std::function<void(const Item&)> use) {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([tunnel, use] {
        Item item;
        while (!isTerminate_h()) {
          if (!get_h(&item, tunnel)) continue;
          use(item);
          endTask_h(tunnel);
        }
      });
    }
  }
  ~Consumers() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

struct HiWay : testing::TestWithParam<const char*> {
  HiWay() : runtime(GetParam()), card(runtime.domain(runtime.domain_count() - 1).place(1)) {
    HiWayLib::use(runtime);
  }
  ~HiWay() override { shutdownService(); }

  weir::Kernel kernel(const char* name, Number (*code)(Number)) {
    return runtime.kernel(name, [code](const weir::Call& call) {
      const auto in = call.span<const Number>(0);
      const auto out = call.span<Number>(1);
      std::transform(in.begin(), in.end(), out.begin(), code);
    });
  }

  weir::Runtime runtime;
  weir::Place card;
};

TEST_P(HiWay, TunnelsToTheDeviceAndBack_TransformEveryItem) {
  constexpr Number kCount = 20'000;
  int in = -1, out = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, true);
  createTunnel<Number>(out, HiWayLib::GPU_TO_CPU, true);
  HiWayLib::configKernel(in, {out}, kernel("square", [](Number x) { return x * x; }), card);
  setupService();
  std::atomic<Number> sum{0}, seen{0};
  {
    const Consumers<Number> consumers(2, out, [&](Number x) { sum += x, ++seen; });
    for (Number i = 0; i < kCount; ++i) put_h(i, in);
    put_h<>(endFlag_h, in);
  }
  EXPECT_TRUE(isTerminate_h());
  EXPECT_EQ(seen, kCount);
  EXPECT_EQ(sum, (kCount - 1) * kCount * (2 * kCount - 1) / 6);
}

/// An item at a time goes to a device when the tunnel is not for batches.
TEST_P(HiWay, TunnelWithoutBatching_CallsTheKernelForEachItem) {
  int in = -1, out = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, false);
  createTunnel<Number>(out, HiWayLib::GPU_TO_CPU, true);
  std::atomic<Number> largest{0}, calls{0};
  const weir::Kernel pass = runtime.kernel("pass", [&](const weir::Call& call) {
    const auto items = call.span<const Number>(0);
    std::copy(items.begin(), items.end(), call.span<Number>(1).begin());
    largest = std::max<Number>(largest, items.size());
    ++calls;
  });
  HiWayLib::configKernel(in, {out}, pass, card);
  setupService();
  std::atomic<Number> sum{0};
  {
    const Consumers<Number> consumers(1, out, [&](Number x) { sum += x; });
    for (Number i = 1; i <= 100; ++i) put_h(i, in);
    put_h(endFlag_h, in);
  }
  EXPECT_EQ(sum, 5050u);
  EXPECT_EQ(largest, 1u);
  EXPECT_EQ(calls, 100u);
}

/// Each item of a tree puts its children while its thread has it: no thread waits for room.
TEST_P(HiWay, ConsumersThatPutChildren_SeeEveryNodeAndEnd) {
  struct Node {
    std::uint32_t depth, path;
  };
  constexpr std::uint32_t kDepth = 12;
  int nodes = -1;
  createTunnel<Node>(nodes, HiWayLib::CPU_TO_CPU, true);
  setupService();
  std::atomic<Number> seen{0}, leaves{0};
  {
    const Consumers<Node> consumers(2, nodes, [&](const Node& node) {
      ++seen;
      if (node.depth == kDepth) {
        leaves += node.path;
        return;
      }
      put_h(Node{node.depth + 1, 2 * node.path}, nodes);
      put_h(Node{node.depth + 1, 2 * node.path + 1}, nodes);
    });
    put_h(Node{0, 0}, nodes);
    put_h(endFlag_h, nodes);
  }
  constexpr Number kLeaves = Number{1} << kDepth;
  EXPECT_EQ(seen, 2 * kLeaves - 1);
  EXPECT_EQ(leaves, kLeaves * (kLeaves - 1) / 2);
}

/// Items go to the device and back until nothing is left of them.
TEST_P(HiWay, LoopThroughTheDevice_RunsUntilNoItemIsLeft) {
  constexpr Number kCount = 2'000;
  int in = -1, out = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, true);
  createTunnel<Number>(out, HiWayLib::GPU_TO_CPU, true);
  HiWayLib::configKernel(in, {out}, kernel("half", [](Number x) { return x / 2; }), card);
  setupService();
  std::atomic<Number> rounds{0};
  {
    const Consumers<Number> consumers(2, out, [&](Number x) {
      ++rounds;
      if (x > 0) put_h(x, in);
    });
    for (Number i = 0; i < kCount; ++i) put_h(i, in);
    put_h(endFlag_h, in);
  }
  Number expected = 0;
  for (Number i = 0; i < kCount; ++i) {
    for (Number x = i; ++expected, x > 1; x /= 2) continue;
  }
  EXPECT_EQ(rounds, expected);
}

TEST_P(HiWay, OneThreadAlternatesTunnels_SeesEveryItem) {
  constexpr Number kCount = 5'000;
  int first = -1, second = -1;
  createTunnel<Number>(first, HiWayLib::CPU_TO_CPU, true);
  createTunnel<Number>(second, HiWayLib::CPU_TO_CPU, true);
  setupService();
  std::thread feeder([&] {
    for (Number i = 0; i < kCount; ++i) put_h(i, i % 3 == 0 ? first : second);
    put_h(endFlag_h, first);
    put_h(endFlag_h, second);
  });
  Number seen = 0, item = 0;
  while (!isTerminate_h()) {
    for (const int tunnel : {first, second}) {
      if (!get_h(&item, tunnel)) continue;
      EXPECT_EQ(item % 3 == 0, tunnel == first);
      if (tunnel == first) put_h(item + 1, second);  // has a remainder of 1
      ++seen;
      endTask_h(tunnel);
    }
  }
  feeder.join();
  EXPECT_EQ(seen, kCount + (kCount + 2) / 3);
}

TEST_P(HiWay, IsTerminate_IsFalseUntilEndFlagAndLastEndTask) {
  int tunnel = -1;
  createTunnel<Number>(tunnel, HiWayLib::CPU_TO_CPU, true);
  setupService();
  Number item = 0;
  put_h(Number{7}, tunnel);
  ASSERT_TRUE(get_h(&item, tunnel));
  EXPECT_EQ(item, 7u);
  endTask_h(tunnel);
  EXPECT_FALSE(isTerminate_h());
  put_h(Number{8}, tunnel);
  put_h(endFlag_h, tunnel);
  ASSERT_TRUE(get_h(&item, tunnel));
  EXPECT_FALSE(isTerminate_h());
  endTask_h(tunnel);
  EXPECT_FALSE(get_h(&item, tunnel));
  EXPECT_TRUE(isTerminate_h());
}

TEST_P(HiWay, StencilOfSetValues_EqualsTheSequentialResult) {
  constexpr std::size_t kRows = 150, kColumns = 131;
  const weir::Kernel cross = runtime.kernel("cross", [](const weir::Call& call) {
    const auto scalar = [&](std::size_t i) { return call.scalar<std::size_t>(i); };
    const std::size_t stride = scalar(2);
    const auto* const from = static_cast<const float*>(call.operand(1).address);
    auto* const to = static_cast<float*>(call.operand(0).address);
    for (std::size_t r = 0; r < scalar(0); ++r) {
      for (std::size_t c = 0; c < scalar(1); ++c) {
        const float* const x = from + (r + scalar(3)) * stride + c + scalar(4);
        const std::size_t row = scalar(5) + r, column = scalar(6) + c;
        const bool edge = row == 0 || column == 0 || row == kRows - 1 || column == kColumns - 1;
        to[r * stride + c] = edge ? *x : *x + *(x - 1) + *(x + 1) + *(x - stride) + *(x + stride);
      }
    }
  });
  const auto value = [](std::size_t row, std::size_t column) {
    return static_cast<float>((row * 7 + column * 3) % 101);
  };
  int id = -1;
  createTunnel<float>(id, HiWayLib::CPU_TO_GPU, true);
  HiWayLib::configStencilTunnel<float>(
      id, {.rows = kRows, .columns = kColumns, .region_rows = 32, .kernel = cross, .place = &card});
  EXPECT_FALSE(HiWayLib::isStencilReady_h(id, 0, 0));
  setupService();
  const std::uint64_t before = runtime.stats().bytes_h2d;
  for (std::size_t column = 0; column < kColumns; ++column) {
    for (std::size_t row = 0; row < kRows; ++row) {
      HiWayLib::set_h(id, static_cast<int>(column), static_cast<int>(row), value(row, column));
    }
  }
  EXPECT_FALSE(isTerminate_h());
  put_h(endFlag_h, id);
  while (!isTerminate_h()) std::this_thread::yield();
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      const int x = static_cast<int>(column), y = static_cast<int>(row);
      ASSERT_TRUE(HiWayLib::isStencilReady_h(id, x, y));
      float made = 0, expected = value(row, column);
      HiWayLib::fetch_h(id, x, y, &made);
      if (row > 0 && column > 0 && row < kRows - 1 && column < kColumns - 1) {
        expected += value(row, column - 1) + value(row, column + 1) + value(row - 1, column) +
                    value(row + 1, column);
      }
      ASSERT_EQ(made, expected) << x << ", " << y;
    }
  }
  if (!runtime.domain(runtime.domain_count() - 1).info().aliases_host) {
    EXPECT_EQ(runtime.stats().bytes_h2d - before, kRows * kColumns * sizeof(float));
  }
  double other = 0;
  EXPECT_NE(thrown_by([&] { HiWayLib::fetch_h(id, 0, 0, &other); }).find("another type"),
            std::string::npos);
  EXPECT_NE(thrown_by([&] { HiWayLib::set_h(id, 131, 0, 1.0F); }).find("131 x 150"),
            std::string::npos);
}

/// Figure 3 of the paper: a 3x3 stencil needs the regions at the corners of a tile, too.
TEST_P(HiWay, CornerRegionIsMissing_StencilIsNotReady) {
  constexpr int kEdge = 32, kRegion = 16;
  const weir::Kernel square = runtime.kernel("square", [](const weir::Call& call) {
    const auto scalar = [&](std::size_t i) { return call.scalar<std::size_t>(i); };
    const std::size_t stride = scalar(2);
    const auto* const from = static_cast<const float*>(call.operand(1).address);
    auto* const to = static_cast<float*>(call.operand(0).address);
    for (std::size_t r = 0; r < scalar(0); ++r) {
      for (std::size_t c = 0; c < scalar(1); ++c) {
        const float* const x = from + (r + scalar(3)) * stride + c + scalar(4);
        const std::size_t row = scalar(5) + r, column = scalar(6) + c;
        float sum = *x;
        if (row > 0 && column > 0 && row < kEdge - 1 && column < kEdge - 1) {
          sum += *(x - 1) + *(x + 1);
          for (const float* const y : {x - stride, x + stride}) sum += *(y - 1) + *y + *(y + 1);
        }
        to[r * stride + c] = sum;
      }
    }
  });
  const auto value = [](int x, int y) { return static_cast<float>(1 + 16 * x + 32 * y); };
  int id = -1;
  createTunnel<float>(id, HiWayLib::CPU_TO_GPU, true);
  HiWayLib::configStencilTunnel<float>(id, {.rows = kEdge,
                                            .columns = kEdge,
                                            .region_rows = kRegion,
                                            .region_columns = kRegion,
                                            .kernel = square,
                                            .place = &card});
  setupService();
  const auto set = [&](int left, int top) {
    for (int y = top; y < top + kRegion; ++y) {
      for (int x = left; x < left + kRegion; ++x) HiWayLib::set_h(id, x, y, value(x, y));
    }
  };
  set(0, 0);
  set(kRegion, 0);
  set(0, kRegion);
  for (int poll = 0; poll < 20'000; ++poll) {
    ASSERT_FALSE(HiWayLib::isStencilReady_h(id, 15, 15));
    std::this_thread::yield();
  }
  set(kRegion, kRegion);
  put_h(endFlag_h, id);
  while (!isTerminate_h()) std::this_thread::yield();
  float made = 0;
  HiWayLib::fetch_h(id, 15, 15, &made);
  EXPECT_EQ(made, 6489.0F);
}

INSTANTIATE_TEST_SUITE_P(Domains, HiWay,
                         testing::Values("host,sim:cores=1",
                                         "host:cores=1,sim:order=device,cores=1",
                                         "sim:clock=virtual,gbps=6"),
                         [](const auto& domains) { return "On" + std::to_string(domains.index); });

TEST(HiWayThatIsMisused, EachWrongCall_IsRefusedWithItsReason) {
  weir::Runtime runtime("host,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  const weir::Kernel none = runtime.kernel("none", [](const weir::Call&) {});
  HiWayLib::use(runtime);
  int host = -1, card_in = -1, card_out = -1, stencil = -1;
  createTunnel<Number>(host, HiWayLib::CPU_TO_CPU, true);
  createTunnel<Number>(card_in, HiWayLib::CPU_TO_GPU, true);
  createTunnel<Number>(card_out, HiWayLib::GPU_TO_CPU, true);
  createTunnel<float>(stencil, HiWayLib::CPU_TO_GPU, true);
  const auto expect = [](const char* words, const auto& body) {
    EXPECT_NE(thrown_by(body).find(words), std::string::npos) << thrown_by(body);
  };
  Number item = 0;
  expect("does not lead to a GPU", [&] { HiWayLib::configKernel(host, {card_out}, none, card); });
  expect("does not begin on a GPU", [&] { HiWayLib::configKernel(card_in, {host}, none, card); });
  expect("there is no tunnel 9", [&] { HiWayLib::configKernel(9, {}, none, card); });
  expect("no values of a stencil",
         [&] { HiWayLib::configStencilTunnel<double>(stencil, {.rows = 1, .columns = 1}); });
  expect("needs rows", [&] { HiWayLib::configStencilTunnel<float>(stencil, {}); });
  expect("has no stencil", [&] { HiWayLib::set_h(stencil, 0, 0, 1.0F); });
  expect("call setupService()", [&] { put_h(item, host); });
  expect("call setupService()", [&] { get_h(&item, host); });
  expect("tunnel 1", [&] { setupService(); });  // no stage takes its items
  HiWayLib::configKernel(card_in, {card_out}, none, card);
  HiWayLib::configKernel(stencil, {}, none, card);
  setupService();
  int late = -1;
  expect("before setupService()", [&] { createTunnel<Number>(late, HiWayLib::CPU_TO_CPU, true); });
  expect("before setupService()", [&] { setupService(); });
  expect("begins on a GPU", [&] { put_h(item, card_out); });
  expect("leads to a GPU", [&] { get_h(&item, card_in); });
  expect("8 bytes, not 1", [&] { put_h('x', host); });
  expect("ends what get_h() gave", [&] { endTask_h(host); });
  put_h(item, host);
  ASSERT_TRUE(get_h(&item, host));
  expect("call endTask_h() before", [&] { get_h(&item, host); });
  expect("has no item of tunnel 2", [&] { endTask_h(card_out); });
  endTask_h(host);
  expect("ends what get_h() gave", [&] { endTask_h(host); });
  put_h(endFlag_h, host);
  expect("got its end flag", [&] { put_h(item, host); });
  expect("takes one end flag", [&] { put_h(endFlag_h, host); });
  shutdownService();
}

TEST(HiWayThatIsMisused, ThreadExitsWithoutEndTask_IsReportedAtShutdown) {
  const weir::Runtime runtime("host");
  HiWayLib::use(runtime);
  int tunnel = -1;
  createTunnel<Number>(tunnel, HiWayLib::CPU_TO_CPU, true);
  setupService();
  put_h(Number{1}, tunnel);
  std::thread([&] {
    Number item = 0;
    EXPECT_TRUE(get_h(&item, tunnel));
  }).join();
  Number item = 0;
  EXPECT_FALSE(get_h(&item, tunnel));
  EXPECT_TRUE(isTerminate_h());
  EXPECT_NE(thrown_by([] { shutdownService(); }).find("before it called endTask_h()"),
            std::string::npos);
}

/// The time in which a batch waits for a thread does not count as work: batches grow though each
/// waits.
TEST(HiWayOfAThreadThatComesLate, HandsOutLargeBatches) {
  constexpr Number kCount = 1'000;
  const weir::Runtime runtime("host:cores=1");
  HiWayLib::use(runtime);
  int tunnel = -1;
  createTunnel<Number>(tunnel, HiWayLib::CPU_TO_CPU, true);
  setupService();
  for (Number i = 0; i < kCount; ++i) put_h(i, tunnel);
  put_h(endFlag_h, tunnel);
  const HiWayLib::detail::Holding& held = HiWayLib::detail::Service::instance().holding();
  Number seen = 0, handed_out = 0, item = 0;
  while (!isTerminate_h()) {
    if (held.offer == nullptr) {  // the worker has waited by then
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
    if (!get_h(&item, tunnel)) continue;
    handed_out += held.index == 0;
    ++seen;
    endTask_h(tunnel);
  }
  EXPECT_EQ(seen, kCount);
  EXPECT_LT(handed_out, kCount / 4);  // 22 where nothing interrupts the thread
  shutdownService();
}

/// More threads than workers: each item comes to one of them, and none waits for ever.
TEST(HiWayOfManyThreads, MoreThreadsThanWorkers_EveryItemIsTaken) {
  struct Node {
    std::uint32_t depth, unused;
  };
  constexpr std::uint32_t kRoots = 40, kDepth = 6;
  const weir::Runtime runtime("host:cores=2");
  for (const std::size_t threads : {3u, 8u}) {
    HiWayLib::use(runtime);
    int first = -1, second = -1;
    createTunnel<Node>(first, HiWayLib::CPU_TO_CPU, true);
    createTunnel<Node>(second, HiWayLib::CPU_TO_CPU, true);
    setupService();
    std::atomic<Number> seen{0};
    {
      const auto split = [&](const Node& node) {
        ++seen;
        if (node.depth == kDepth) return;
        put_h(Node{node.depth + 1, 0}, first);
        put_h(Node{node.depth + 1, 0}, second);
      };
      const Consumers<Node> consumers(threads, first, split);
      const Consumers<Node> others(1, second, split);
      for (std::uint32_t i = 0; i < kRoots; ++i) put_h(Node{0, 0}, first);
      put_h(endFlag_h, first);
      put_h(endFlag_h, second);
    }
    EXPECT_EQ(seen, Number{kRoots} * ((Number{2} << kDepth) - 1));
    shutdownService();
  }
}

/// Threads that take one item and go, or turn to another tunnel, keep no others.
TEST(HiWayOfTransientThreads, ThreadsExitAfterOneItem_NoItemIsLost) {
  constexpr Number kCount = 2'000;
  const weir::Runtime runtime("host:cores=1");
  HiWayLib::use(runtime);
  int first = -1, second = -1;
  createTunnel<Number>(first, HiWayLib::CPU_TO_CPU, true);
  createTunnel<Number>(second, HiWayLib::CPU_TO_CPU, true);
  setupService();
  std::atomic<Number> seen{0};
  const auto visit = [&](int tunnel) {
    Number item = 0;
    if (!get_h(&item, tunnel)) return;
    ++seen;
    endTask_h(tunnel);
  };
  {
    const Consumers<Number> consumers(1, first, [&](Number) { ++seen; });
    const Consumers<Number> others(1, second, [&](Number) { ++seen; });
    std::thread feeder([&] {
      for (Number i = 0; i < kCount; ++i) put_h(i, i % 2 == 0 ? first : second);
      put_h(endFlag_h, first);
      put_h(endFlag_h, second);
    });
    for (int i = 0; i < 50; ++i) std::thread([&] { visit(first), visit(second); }).join();
    feeder.join();
  }
  EXPECT_EQ(seen, kCount);
  shutdownService();  // throws when a thread that had no item has failed one
}

/// What is in flight is given up, also what a thread has and what waits for room.
TEST(HiWayThatIsShutDown, ItemsInFlight_AreDiscardedAndLaterCallsRefused) {
  for (int round = 0; round < 20; ++round) {
    const weir::Runtime runtime("host");
    HiWayLib::use(runtime);
    int tunnel = -1;
    createTunnel<Number>(tunnel, HiWayLib::CPU_TO_CPU, true);
    setupService();
    for (Number i = 0; i < 500; ++i) put_h(i, tunnel);
    Number item = 0;
    ASSERT_TRUE(get_h(&item, tunnel));
    shutdownService();
    EXPECT_NE(thrown_by([&] { endTask_h(tunnel); }).find("there is no tunnel"), std::string::npos);
    EXPECT_NE(thrown_by([&] { put_h(item, tunnel); }).find("there is no tunnel"),
              std::string::npos);
  }
}

TEST(HiWayWithScratch, ScratchBytes_AreAnOperandOfTheKernel) {
  const weir::Runtime runtime("host,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  std::atomic<std::size_t> words{0};
  const weir::Kernel count = runtime.kernel(
      "count", [&words](const weir::Call& call) { words = call.span<Number>(1).size(); });
  HiWayLib::use(runtime);
  int in = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, true);
  HiWayLib::configKernel(in, {}, count, card, {.scratch_bytes = 64});
  setupService();
  put_h(Number{1}, in);
  put_h(endFlag_h, in);
  while (!isTerminate_h()) std::this_thread::yield();
  shutdownService();
  EXPECT_EQ(words, 8u);
}

/// The first failure of an item ends the service, which says what it was.
TEST(HiWayWhoseCardFails, KernelThatThrows_ShutdownReportsItsMessage) {
  const weir::Runtime runtime("host,sim:cores=1");
  const weir::Place card = runtime.domain(1).place();
  const weir::Kernel bad = runtime.kernel(
      "bad", [](const weir::Call&) { throw std::runtime_error("the device is on fire"); });
  HiWayLib::use(runtime);
  int in = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, true);
  HiWayLib::configKernel(in, {}, bad, card);
  setupService();
  put_h(Number{1}, in);
  while (!isTerminate_h()) std::this_thread::yield();
  EXPECT_NE(thrown_by([] { shutdownService(); }).find("on fire"), std::string::npos);
}

/// A worker, which may be the only one, has lent an item to a thread that keeps it beyond the
/// failure; no thread gets the next one.
struct HiWayWithAFailingCard : testing::TestWithParam<const char*> {};

TEST_P(HiWayWithAFailingCard, KernelThrowsWhileAThreadHoldsAnItem_ServiceEnds) {
  const weir::Runtime runtime(GetParam());
  const weir::Place card = runtime.domain(1).place();
  std::atomic<bool> begun{false}, go{false};
  const weir::Kernel bad = runtime.kernel("bad", [&](const weir::Call&) {
    begun = true;
    while (!go) std::this_thread::yield();
    throw std::runtime_error("the device is on fire");
  });
  HiWayLib::use(runtime);
  int in = -1, other = -1;
  createTunnel<Number>(in, HiWayLib::CPU_TO_GPU, true);
  createTunnel<Number>(other, HiWayLib::CPU_TO_CPU, true);
  HiWayLib::configKernel(in, {}, bad, card);
  setupService();
  put_h(Number{1}, in);
  while (!begun) std::this_thread::yield();  // the worker has brought it there
  put_h(Number{2}, other);
  put_h(Number{3}, other);
  Number item = 0;
  ASSERT_TRUE(get_h(&item, other));
  go = true;
  while (!isTerminate_h()) std::this_thread::yield();
  EXPECT_NE(thrown_by([&] { put_h(item, other); }).find("the item is lost"), std::string::npos);
  EXPECT_NE(thrown_by([] { shutdownService(); }).find("on fire"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Hosts, HiWayWithAFailingCard,
                         testing::Values("host:cores=1,sim:cores=1", "host:cores=2,sim:cores=1"),
                         [](const auto& domains) { return "On" + std::to_string(domains.index); });

}  // namespace
}  // namespace hiway
