#include "share/chunk_source.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "share/completed_items.hpp"

namespace weir::rt {
namespace {

TEST(ChunkSource, TakesReturnedItemsBeforeNewOnes) {
  ChunkSource source(10, nullptr);
  const std::vector<PlaceStatus> places(2);
  source.begin("fixed:4", places, nullptr);
  std::vector<SharePeer> peers(2);
  ItemRange range{0, 0};
  EXPECT_EQ(source.next_size(0, 0, peers, 1), 4u);
  ASSERT_TRUE(source.take(4, range));
  EXPECT_EQ(range.first, 0u);
  source.give_back(range);
  ASSERT_TRUE(source.take(3, range));
  EXPECT_EQ(range.first, 0u);
  ASSERT_TRUE(source.take(3, range));
  EXPECT_EQ(range.first, 3u);
  EXPECT_EQ(range.count, 1u);
  EXPECT_FALSE(source.has_returned_items());
  ASSERT_TRUE(source.take(100, range));
  EXPECT_EQ(range.first, 4u);
  EXPECT_EQ(range.count, 6u);
  EXPECT_FALSE(source.take(1, range));
  EXPECT_EQ(source.taken(), 10u);
  EXPECT_EQ(source.next_size(0, 0, peers, 1), 0u);
}

TEST(ChunkSource, ExternalCounter_AdvancesByTheTakenItems) {
  ChunkSource source(10, nullptr);
  std::int64_t word = 7;
  source.begin("one", {}, &word);
  ItemRange range{0, 0};
  ASSERT_TRUE(source.take(2, range));
  EXPECT_EQ(range.first, 7u);
  EXPECT_EQ(word, 9);
}

TEST(ChunkSource, RaiseTakenWithALowerNumber_KeepsTheHigherOne) {
  ChunkSource source(10, nullptr);
  source.begin("one", {}, nullptr);
  source.raise_taken(6);
  source.raise_taken(3);
  EXPECT_EQ(source.taken(), 6u);
}

TEST(PlaceStatus, StaleStatus_AssumesThatWorkContinued) {
  PlaceStatus status;
  status.speed.store(2);
  status.pending.store(100);
  status.current.store(100);
  EXPECT_EQ(status.unreported_work(80), 0);
  status.stale = true;
  EXPECT_EQ(status.estimate(20).free_ns, 30);
  EXPECT_EQ(status.estimate(80).free_ns, 0);
  EXPECT_EQ(status.unreported_work(80), 60);
}

TEST(CompletedItems, ItemsReportedTwice_AreRefused) {
  const std::vector<std::size_t> offsets{0, 1, 2, 3};
  std::vector<std::byte> results(3);
  CompletedItems items(3, results.data(), offsets.data());
  items.refuse_repeated();
  const std::vector<std::byte> sent(2, std::byte{5});
  EXPECT_TRUE(items.add({1, 2}, sent, 10));
  EXPECT_EQ(results[2], std::byte{5});
  EXPECT_FALSE(items.add({2, 1}, {}, 11));
  EXPECT_EQ(items.count(), 2u);
  EXPECT_EQ(items.ended_ns(), -1);
  EXPECT_TRUE(items.add({0, 1}, {}, 12));
  EXPECT_TRUE(items.are_all());
  items.end(20);
  EXPECT_EQ(items.ended_ns(), 12);
}

}  // namespace
}  // namespace weir::rt
