// The effect of a stream is that of its actions one after the other; what is independent passes.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <limits>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Ordering, ChainOf1000DependentKernels_RunsInProgramOrder) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(1), y = rig.numbers(1);
  std::uint64_t expected = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    rig.stream.compute(rig.kernels.mix, {read(x.all()), readwrite(y.all())}, {i});
    expected = 3 * expected + static_cast<std::uint64_t>(i);
  }
  rig.stream.download(y.all());
  rig.stream.synchronize();
  EXPECT_EQ(*y.data<std::uint64_t>(), expected);
}

/// Instances of a few cells in the host and the device, and a program on them.
class RandomProgram {
 public:
  RandomProgram(const Subject& subject, unsigned seed) : rig_(subject), random_(seed) {}

  /// Enqueues, computes the same, compares.
  void run() {
    for (int i = 0; i < 300; ++i) step();
    rig_.stream.synchronize();
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      ASSERT_EQ(host()[cell], host_[cell]) << "in the host's instance, cell " << cell;
    }
    rig_.stream.download(x_.all());
    rig_.stream.synchronize();
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      ASSERT_EQ(host()[cell], device_[cell]) << "in the device's instance, cell " << cell;
    }
  }

 private:
  static constexpr std::size_t kCells = 12;

  std::uint64_t* host() const { return x_.data<std::uint64_t>(); }
  Region cells(std::size_t first, std::size_t count) const {
    return x_.elements<std::int64_t>(first, count);
  }

  void step() {
    const std::size_t count = 1 + random_() % 4, first = random_() % (kCells - count + 1);
    const std::size_t from = random_() % (kCells - count + 1);
    const auto value = static_cast<std::int64_t>(random_() % 100);
    const bool disjoint = from + count <= first || first + count <= from;
    switch (random_() % 5) {
      case 0:
        rig_.stream.upload(cells(first, count));
        std::copy_n(host_.begin() + first, count, device_.begin() + first);
        break;
      case 1:
        rig_.stream.download(cells(first, count));
        std::copy_n(device_.begin() + first, count, host_.begin() + first);
        break;
      case 2:
        rig_.stream.compute(rig_.kernels.fill, {write(cells(first, count))}, {value});
        std::fill_n(device_.begin() + first, count, static_cast<std::uint64_t>(value));
        break;
      default:
        if (!disjoint) break;
        rig_.stream.compute(rig_.kernels.mix,
                            {read(cells(from, count)), readwrite(cells(first, count))}, {value});
        for (std::size_t i = 0; i < count; ++i) {
          std::uint64_t& y = device_[first + i];
          y = 3 * y + device_[from + i] + static_cast<std::uint64_t>(value);
        }
    }
  }

  Rig rig_;
  std::mt19937 random_;
  Buffer x_ = rig_.numbers(kCells);
  std::array<std::uint64_t, kCells> host_{}, device_{};
};

CONFORMANCE_TEST(Ordering, RandomPrograms_EqualTheirSequentialExecution) {
  for (unsigned seed = 1; seed <= 25; ++seed) {
    RandomProgram(subject, seed).run();
    if (testing::Test::HasFailure()) FAIL() << "with seed " << seed;
  }
}

CONFORMANCE_TEST(Ordering, IndependentActionsBehindAPendingOne_CompleteFirst) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  rig.stream.wait(rig.closed(), x.all());
  const Event held = rig.stream.compute(rig.kernels.fill, {write(x.all())}, {1});
  rig.stream.compute(rig.kernels.fill, {write(y.all())}, {2});
  rig.stream.download(y.all()).wait();
  EXPECT_EQ(y.data<std::int64_t>()[7], 2);
  EXPECT_FALSE(held.complete());
  rig.gate.open();
  rig.stream.download(x.all()).wait();
  EXPECT_EQ(x.data<std::int64_t>()[7], 1);
}

CONFORMANCE_TEST(Ordering, InterleavedTiles_AreIndependentAndAnOverlappingActionWaits) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(64);
  const Region even{x.handle(), {0, {8, 32, 1}, {16, 0}}},
      odd{x.handle(), {8, {8, 32, 1}, {16, 0}}};
  rig.stream.wait(rig.closed(), even);
  const Event held = rig.stream.compute(rig.kernels.number, {write(even)});
  rig.stream.compute(rig.kernels.number, {write(odd)});
  rig.stream.download(odd).wait();
  EXPECT_EQ(x.data<std::int64_t>()[63], 31'000);
  EXPECT_FALSE(held.complete());
  const Event both =
      rig.stream.compute(rig.kernels.add, {readwrite(x.elements<std::int64_t>(61, 3))}, {1});
  EXPECT_FALSE(both.complete());
  rig.gate.open();
  rig.stream.download(x.all()).wait();
  EXPECT_EQ(x.data<std::int64_t>()[62], 31'001);
  EXPECT_EQ(x.data<std::int64_t>()[63], 31'001);
}

CONFORMANCE_TEST(Ordering, WaitWithoutOperands_ActsAsABarrierOfItsStreamOnly) {
  GatedRig rig(subject);
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  rig.stream.wait(rig.closed());
  const Event behind = rig.stream.compute(rig.kernels.fill, {write(y.all())}, {2});
  const Event free = rig.place.stream().compute(rig.kernels.fill, {write(x.all())}, {3});
  free.wait();  // another stream knows nothing of the barrier
  EXPECT_FALSE(behind.complete());
  rig.gate.open();
  rig.stream.download(y.all()).wait();
  EXPECT_EQ(y.data<std::int64_t>()[0], 2);
}

CONFORMANCE_TEST(Ordering, FifoPolicy_IndependentActionWaitsForEarlierOnes) {
  GatedRig rig(subject);
  const Stream strict = rig.place.stream({.policy = WEIR_DEPENDENCE_POLICY_FIFO});
  const Buffer x = rig.numbers(8), y = rig.numbers(8);
  strict.wait(rig.closed(), x.all());
  const Event behind = strict.compute(rig.kernels.fill, {write(y.all())}, {2});
  rig.stream.compute(rig.kernels.fill, {write(x.all())}, {3}).wait();
  EXPECT_FALSE(behind.complete());
  rig.gate.open();
  behind.wait();
}

CONFORMANCE_TEST(Ordering, KernelsAlternatingBetweenStreams_RunInTheOrderOfTheirEvents) {
  const Rig rig(subject);
  const Stream other = rig.place.stream();
  const Buffer x = rig.numbers(1), zero = rig.numbers(1);
  std::uint64_t expected = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const Stream& from = i % 2 == 0 ? rig.stream : other;
    const Stream& to = i % 2 == 0 ? other : rig.stream;
    to.wait(from.compute(rig.kernels.mix, {read(zero.all()), readwrite(x.all())}, {i}), x.all());
    expected = 3 * expected + static_cast<std::uint64_t>(i);
  }
  rig.stream.download(x.all());
  rig.stream.synchronize();
  EXPECT_EQ(*x.data<std::uint64_t>(), expected);
}

/// A chain whose first action runs until the program lets it end, and what its trace says.
class HeldChain {
 public:
  /// With barriers between its actions, or without.
  HeldChain(const Subject& subject, bool barriers)
      : rig_(subject),
        barriers_(barriers),
        path_(testing::TempDir() + subject.name + std::to_string(getpid()) + ".json") {
    check(weir_trace_start(rig_.runtime.handle(), 0));
  }
  ~HeldChain() { std::remove(path_.c_str()); }

  /// Enqueues all of it, gives others the processor so often, and lets the first end.
  void run(int patience) {
    const Buffer x = rig_.numbers(1);
    holding = true;
    rig_.stream.compute(rig_.kernels.held, {readwrite(x.all())});
    for (int i = 0; i < kLength; ++i) {
      if (barriers_) rig_.stream.barrier();
      rig_.stream.compute(rig_.kernels.add, {readwrite(x.all())}, {1}, "add");
    }
    for (int i = 0; i < patience; ++i) std::this_thread::yield();
    holding = false;
    holding.notify_all();
    rig_.stream.synchronize();
  }

  /// How many actions were handed over before the first ended.
  int handed_over() {
    check(weir_trace_write(rig_.runtime.handle(), path_.c_str()));
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    const std::string trace = text.str();
    const std::regex slice(
        R"re("ts":([0-9.]+),"dur":([0-9.]+),"cat":"[a-z]+","name":"(held|add)[^{]*\{[^}]*"ready_us":([0-9.]+))re");
    double end = std::numeric_limits<double>::infinity();
    std::vector<double> ready;
    for (std::sregex_iterator found(trace.begin(), trace.end(), slice), last; found != last;
         ++found) {
      if ((*found)[3] == "held") {
        end = std::stod((*found)[1]) + std::stod((*found)[2]);
      } else {
        ready.push_back(std::stod((*found)[4]));
      }
    }
    EXPECT_EQ(ready.size(), std::size_t{kLength}) << trace;
    return static_cast<int>(
        std::count_if(ready.begin(), ready.end(), [&](double time) { return time < end; }));
  }

  static constexpr int kLength = 8;

 private:
  Rig rig_;
  const bool barriers_;
  const std::string path_;
};

/// Expects that a chain is handed over before its first action ends. Where the host orders actions
/// no patience is enough.
void expect_no_host(const Subject& subject, bool barriers) {
  int handed_over = 0;
  for (int patience = 1; patience <= 1 << 16 && handed_over < HeldChain::kLength; patience *= 16) {
    HeldChain chain(subject, barriers);
    chain.run(patience);
    handed_over = chain.handed_over();
  }
  EXPECT_EQ(handed_over, HeldChain::kLength);
}

CONFORMANCE_TEST(Ordering, DependentKernels_AreSubmittedBeforeTheFirstEnds) {
  expect_no_host(subject, false);
}

CONFORMANCE_TEST(Ordering, KernelsSeparatedByBarriers_AreSubmittedBeforeTheFirstEnds) {
  expect_no_host(subject, true);
}

}  // namespace
}  // namespace weir::conformance
