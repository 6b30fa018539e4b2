#include "net/spin_limit.hpp"

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
  EXPECT_LE(end - sys::now_ns(), SpinLimit::kLongestNap);
}

TEST(SpinLimit, NapsAreShortBehindNews) {
  for (const bool own : {true, false}) {
    SpinLimit spin(0);
    spin.again();
    const std::int64_t begin = sys::now_ns();
    while (sys::now_ns() < begin + 10 * SpinLimit::kShortestNap) {
    }
    const std::int64_t news = sys::now_ns();
    own ? spin.found() : spin.others_look();
    spin.again();
    const std::int64_t end = spin.end_of_nap(), now = sys::now_ns();
    EXPECT_LE(end - now, std::max(SpinLimit::kShortestNap, (now - news) / 8));
  }
}

}  // namespace
}  // namespace weir::rt
