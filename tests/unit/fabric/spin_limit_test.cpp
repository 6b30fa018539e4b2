#include "fabric/spin_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::rt {
namespace {

TEST(SpinLimit, NapsGrowWhileNothingComes) {
  constexpr std::int64_t kSilence = 1'000'000;
  SpinLimit spin(0);
  EXPECT_FALSE(spin.again());
  const std::int64_t begin = sys::now_ns();
  while (sys::now_ns() < begin + kSilence) {
    spin.again();
    spin.in_vain();
  }
  const std::int64_t before = sys::now_ns();
  const std::int64_t end = spin.end_of_nap();
  EXPECT_GE(end - before, kSilence / 8);
  EXPECT_LE(end - sys::now_ns(), kNapsOfWaiters.longest_ns);
}

TEST(SpinLimit, NapsAreShortBehindNews) {
  for (const bool own : {true, false}) {
    SpinLimit spin(0);
    spin.again();
    const std::int64_t begin = sys::now_ns();
    while (sys::now_ns() < begin + 10 * Naps::kShortest) {
    }
    const std::int64_t news = sys::now_ns();
    own ? spin.found() : spin.others_look();
    spin.again();
    const std::int64_t end = spin.end_of_nap(), now = sys::now_ns();
    EXPECT_LE(end - now, std::max(Naps::kShortest, (now - news) / 8));
  }
}

/// What does not come while it is looked for, but soon afterwards, is looked for longer again.
TEST(SpinLimit, LooksGrowWhereNewsEndSleeps) {
  constexpr std::int64_t kMost = 1'000'000'000'000, kAway = 20'000'000, kPause = 100'000;
  const auto pass = [](std::int64_t time) {
    for (const std::int64_t begin = sys::now_ns(); sys::now_ns() < begin + time;) sys::pause();
  };
  SpinLimit spin(kMost);
  for (int i = 0; i < 40; ++i) spin.in_vain();
  EXPECT_TRUE(spin.again());
  pass(kPause);
  EXPECT_FALSE(spin.again());
  pass(kAway);
  spin.in_vain();
  spin.found();
  const std::int64_t begin = sys::now_ns();
  EXPECT_TRUE(spin.again());
  pass(kPause);
  EXPECT_TRUE(spin.again() || sys::now_ns() - begin >= 2 * kAway);
}

}  // namespace
}  // namespace weir::rt
