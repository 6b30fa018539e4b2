#include "fabric/spin_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::rt {
namespace {

TEST(SpinLimit, NoArrivals_SleepsGrowWithTheSilence) {
  constexpr std::int64_t kSilence = 1'000'000;
  SpinLimit spin(0);
  EXPECT_FALSE(spin.again());
  const std::int64_t begin = sys::now_ns();
  while (sys::now_ns() < begin + kSilence) {
    spin.again();
    spin.found_nothing();
  }
  const std::int64_t before = sys::now_ns();
  const std::int64_t end = spin.end_of_sleep();
  EXPECT_GE(end - before, kSilence / 8);
  EXPECT_LE(end - sys::now_ns(), kSleepsOfWaiters.longest_ns);
}

TEST(SpinLimit, SleepsAreShortAfterArrivals) {
  for (const bool own : {true, false}) {
    SpinLimit spin(0);
    spin.again();
    const std::int64_t begin = sys::now_ns();
    while (sys::now_ns() < begin + 10 * Sleeps::kShortest) {
    }
    const std::int64_t arrival = sys::now_ns();
    own ? spin.found() : spin.others_poll();
    spin.again();
    const std::int64_t end = spin.end_of_sleep(), now = sys::now_ns();
    EXPECT_LE(end - now, std::max(Sleeps::kShortest, (now - arrival) / 8));
  }
}

/// An arrival soon after the end of a spin makes later spins longer.
TEST(SpinLimit, ArrivalSoonAfterASpin_LengthensLaterSpins) {
  constexpr std::int64_t kMost = 1'000'000'000'000, kAsleep = 20'000'000, kPause = 100'000;
  const auto pass = [](std::int64_t time) {
    for (const std::int64_t begin = sys::now_ns(); sys::now_ns() < begin + time;) sys::pause();
  };
  SpinLimit spin(kMost);
  for (int i = 0; i < 40; ++i) spin.found_nothing();
  EXPECT_TRUE(spin.again());
  pass(kPause);
  EXPECT_FALSE(spin.again());
  pass(kAsleep);
  spin.found_nothing();
  spin.found();
  const std::int64_t begin = sys::now_ns();
  EXPECT_TRUE(spin.again());
  pass(kPause);
  EXPECT_TRUE(spin.again() || sys::now_ns() - begin >= 2 * kAsleep);
}

}  // namespace
}  // namespace weir::rt
