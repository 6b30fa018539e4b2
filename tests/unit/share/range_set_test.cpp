#include "share/range_set.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace weir::rt {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges gaps(const RangeSet& set, std::uint64_t items) {
  Ranges found;
  set.for_each_gap(items, [&](const ItemRange& gap) {
    found.emplace_back(gap.first, gap.count);
    return true;
  });
  return found;
}

TEST(RangeSet, AddedRanges_LeaveTheOtherItemsAsGaps) {
  RangeSet set;
  EXPECT_EQ(gaps(set, 10), (Ranges{{0, 10}}));
  EXPECT_TRUE(set.add({4, 2}));
  EXPECT_TRUE(set.add({8, 1}));
  EXPECT_EQ(gaps(set, 10), (Ranges{{0, 4}, {6, 2}, {9, 1}}));
  EXPECT_TRUE(set.add({6, 2}));
  EXPECT_TRUE(set.add({0, 4}));
  EXPECT_EQ(gaps(set, 10), (Ranges{{9, 1}}));
  EXPECT_TRUE(set.add({9, 1}));
  EXPECT_EQ(gaps(set, 10), Ranges{});
}

TEST(RangeSet, OverlappingRange_IsRefused) {
  RangeSet set;
  EXPECT_TRUE(set.add({4, 4}));
  for (const ItemRange& range : {ItemRange{4, 4}, {3, 2}, {7, 2}, {5, 1}, {0, 20}}) {
    EXPECT_FALSE(set.add(range)) << range.first;
  }
  EXPECT_EQ(gaps(set, 8), (Ranges{{0, 4}}));
}

TEST(RangeSet, RandomRanges_GiveTheSameGapsAsABitmap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    RangeSet set;
    std::vector<bool> marks(40);
    for (int step = 0; step < 30; ++step) {
      const std::uint64_t first = random() % 40, count = 1 + random() % (40 - first);
      bool free = true;
      for (std::uint64_t i = first; i < first + count; ++i) free = free && !marks[i];
      ASSERT_EQ(set.add({first, count}), free);
      for (std::uint64_t i = first; free && i < first + count; ++i) marks[i] = true;
      std::vector<bool> missing(40);
      for (const auto& [at, length] : gaps(set, 40)) {
        for (std::uint64_t i = at; i < at + length; ++i) missing[i] = true;
      }
      for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(missing[i], !marks[i]);
    }
  }
}

}  // namespace
}  // namespace weir::rt
