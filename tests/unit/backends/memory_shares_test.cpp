#include "backends/sim/memory_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace weir::rt {
namespace {

constexpr double kBytesPerNs = 10;

struct Moving final : MemoryShares::Kernel {
  void moved() noexcept override { over = true; }
  bool over = false;
};

TEST(MemoryShares, KernelsThatEndAtTheSameTime_EndInTheOrderOfTheirStart) {
  MemoryShares shares(kBytesPerNs * 1e9);
  std::array<Moving, 4> kernels;
  shares.add(kernels[0], 200, 1);
  shares.add(kernels[1], 100, 1);
  shares.add(kernels[2], 300, 3);  // likewise 100 a thread
  shares.add(kernels[3], 100, 1);
  EXPECT_EQ(shares.next_end_ns(), 60);
  EXPECT_EQ(shares.take_ended(), nullptr);
  shares.advance(60);
  for (const std::size_t i : {1u, 2u, 3u}) EXPECT_EQ(shares.take_ended(), &kernels[i]);
  EXPECT_EQ(shares.take_ended(), nullptr);
  EXPECT_EQ(shares.next_end_ns(), 10);
  shares.advance(10);
  EXPECT_EQ(shares.take_ended(), &kernels[0]);
  EXPECT_TRUE(shares.empty());
}

/// Against a simulation that keeps what remains of each kernel: many kernels that come and go, for
/// so long that the service is rebased.
TEST(MemoryShares, RandomKernels_EndAsInAStepByStepSimulation) {
  struct Reference {
    double left, threads;
  };
  std::mt19937 random(1);
  const auto draw = [&](unsigned limit) { return static_cast<double>(1 + random() % limit); };
  std::vector<Moving> kernels(12);
  std::vector<Reference> references(kernels.size(), {0, 0});
  MemoryShares shares(kBytesPerNs * 1e9);
  for (int round = 0; round < 5000; ++round) {
    const std::size_t i = random() % kernels.size();
    if (references[i].left <= 0) {
      references[i] = {1e9 * draw(1000), draw(60)};
      kernels[i].over = false;
      shares.add(kernels[i], references[i].left, references[i].threads);
    }
    double threads = 0;
    for (const Reference& each : references) threads += each.left > 0 ? each.threads : 0;
    double next = HUGE_VAL;
    for (const Reference& each : references) {
      if (each.left > 0) next = std::min(next, each.left / each.threads * threads / kBytesPerNs);
    }
    ASSERT_NEAR(shares.next_end_ns(), next, 1e-9 * next + 0.01);
    const double step = random() % 2 == 0 ? next : next * draw(99) / 100;
    shares.advance(step);
    for (Reference& each : references) {
      if (each.left > 0) each.left -= step * kBytesPerNs * each.threads / threads;
      if (each.left < 1e-3 * kBytesPerNs) each.left = 0;
    }
    while (MemoryShares::Kernel* const kernel = shares.take_ended()) kernel->moved();
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (references[k].threads == 0) continue;  // never started
      ASSERT_EQ(kernels[k].over, references[k].left <= 0) << round;
    }
    ASSERT_EQ(shares.empty(), std::none_of(references.begin(), references.end(),
                                           [](const auto& each) { return each.left > 0; }));
  }
}

}  // namespace
}  // namespace weir::rt
