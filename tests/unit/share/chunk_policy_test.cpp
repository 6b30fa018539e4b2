#include "share/chunk_policy.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

/// The sizes that a policy gives when equal places visit round robin.
std::vector<std::uint64_t> sizes(const std::string& name, std::uint64_t count, std::size_t places,
                                 std::vector<double> speeds = {}) {
  const auto policy = make_chunk_policy(name, places);
  const Items items(count, nullptr);
  std::vector<SharePeer> peers(places);
  for (std::size_t i = 0; i < speeds.size(); ++i) peers[i].speed = speeds[i];
  std::vector<std::uint64_t> found;
  for (std::uint64_t next = 0, round = 0; next < count && round < 1000; ++round) {
    const std::size_t self = round % places;
    const std::uint64_t size = policy->count({.items = items,
                                              .next = next,
                                              .remaining = count - next,
                                              .remaining_work = static_cast<double>(count - next),
                                              .peers = peers,
                                              .self = self});
    if (size == 0) continue;
    ++peers[self].visits;
    found.push_back(std::min(size, count - next));
    next += found.back();
  }
  return found;
}

using Sizes = std::vector<std::uint64_t>;

TEST(ChunkPolicies, EachPolicy_GivesTheChunkSizesOfItsDefinition) {
  EXPECT_EQ(sizes("static", 10, 3), (Sizes{3, 4, 3}));
  EXPECT_EQ(sizes("static:1,2,2", 10, 3), (Sizes{2, 4, 4}));
  EXPECT_EQ(sizes("one", 3, 2), (Sizes{1, 1, 1}));
  EXPECT_EQ(sizes("fixed:4", 10, 2), (Sizes{4, 4, 2}));
  EXPECT_EQ(sizes("guided", 20, 2), (Sizes{10, 5, 3, 1, 1}));
  EXPECT_EQ(sizes("factoring", 32, 2), (Sizes{8, 8, 4, 4, 2, 2, 1, 1, 1, 1}));
  EXPECT_EQ(sizes("weighted-factoring", 32, 2), sizes("factoring", 32, 2));
  EXPECT_EQ(sizes("weighted-factoring", 32, 2, {1, 3}), (Sizes{4, 12, 2, 6, 1, 3, 1, 2, 1}));
}

TEST(ChunkPolicies, StaticPolicyWithLostPlaces_DividesTheirItemsAmongTheOthers) {
  const Items items(90, nullptr);
  const auto size = [&](const std::string& name, const std::vector<SharePeer>& peers) {
    return make_chunk_policy(name, peers.size())
        ->count({.items = items,
                 .next = 60,
                 .remaining = 30,
                 .remaining_work = 30,
                 .peers = peers,
                 .self = 0});
  };
  const SharePeer visited{.visits = 1}, lost{.lost = true}, late{},
      lost_later{.visits = 1, .lost = true};
  EXPECT_EQ(size("static", {visited, visited, late}), 0u);
  EXPECT_EQ(size("static", {visited, visited, lost}), 15u);
  EXPECT_EQ(size("static", {visited, visited, lost_later}), 15u);
  EXPECT_EQ(size("static", {visited, lost, lost_later}), 30u);
  EXPECT_EQ(size("static:1,1,1e-9", {visited, visited, late}), 10u)
      << "its share is less than an item";
  EXPECT_EQ(size("static:1e-9,1,1", {late, visited, lost_later}), 15u);
}

TEST(ChunkPolicies, UsesPeerSpeeds_IsTrueIfPeersChangeTheChunkSize) {
  const Items items(1000, nullptr);
  const std::vector<SharePeer> unknown(3);
  const std::vector<SharePeer> known = {{.speed = 1, .free_ns = 5, .grain = 7, .visits = 1},
                                        {.speed = 8, .free_ns = 1, .grain = 2, .visits = 2},
                                        {.speed = 2, .visits = 1, .lost = true}};
  for (const char* name : {"learned", "static", "static:1,2,3", "one", "fixed:3", "guided",
                           "factoring", "weighted-factoring"}) {
    const auto policy = make_chunk_policy(name, 3);
    const auto size = [&](const std::vector<SharePeer>& peers) {
      return policy->count({.items = items,
                            .next = 100,
                            .remaining = 900,
                            .remaining_work = 900,
                            .peers = peers,
                            .self = 0});
    };
    EXPECT_EQ(size(unknown) != size(known), policy->uses_peer_speeds()) << name;
  }
}

TEST(ChunkPolicies, InvalidPolicyText_IsRefusedWithTheReason) {
  const auto refusal = [](const char* text) {
    return thrown_by<Error>([&] { make_chunk_policy(text, 2); });
  };
  EXPECT_NE(refusal("facturing").find("did you mean 'factoring'"), std::string::npos);
  EXPECT_NE(refusal("static:1").find("1 weight for 2 places"), std::string::npos);
  EXPECT_NE(refusal("static:1,-1").find("'-1'"), std::string::npos);
  EXPECT_NE(refusal("fixed:0").find("fixed:0"), std::string::npos);
  EXPECT_NE(refusal("fixed:x").find("fixed:x"), std::string::npos);
}

/// What "learned" gives place 0 when `remaining` items of work 1 are left.
std::uint64_t learned(std::uint64_t left, const std::vector<SharePeer>& peers) {
  const Items items(left, nullptr);
  return make_chunk_policy("learned", peers.size())
      ->count({.items = items,
               .next = 0,
               .remaining = left,
               .remaining_work = static_cast<double>(left),
               .peers = peers,
               .self = 0});
}

TEST(LearnedChunks, AreOneItemUntilTheSpeedIsKnown) {
  EXPECT_EQ(learned(1000, {{.speed = 0}, {.speed = 5}}), 1u);
}

TEST(LearnedChunks, PlacesOfUnequalSpeed_GetChunksProportionalToSpeed) {
  const std::uint64_t slow = learned(32000, {{.speed = 1}, {.speed = 3}});
  const std::uint64_t fast = learned(32000, {{.speed = 3}, {.speed = 1}});
  EXPECT_EQ(slow, 250u);  // a quarter of the work in 32 visits
  EXPECT_EQ(fast, 750u);
}

TEST(LearnedChunks, OtherPlacesFinishSooner_PlaceGetsNoItems) {
  EXPECT_EQ(learned(5, {{.speed = 1}, {.speed = 10}}), 0u);
  EXPECT_EQ(learned(10, {{.speed = 1}, {.speed = 10}}), 1u);
  EXPECT_EQ(learned(5, {{.speed = 1}, {.speed = 10, .lost = true}}), 1u);
  EXPECT_EQ(learned(5, {{.speed = 1}, {.speed = 10, .free_ns = 4}}), 1u);
}

TEST(LearnedChunks, GrainOfThePlace_IsTheMinimumChunkUpToItsPart) {
  EXPECT_EQ(learned(32000, {{.speed = 1, .grain = 4096}, {.speed = 1}}), 4096u);
  EXPECT_EQ(learned(1000, {{.speed = 1, .grain = 4096}, {.speed = 1}}), 500u);
}

TEST(Items, WorkOfEachItem_DeterminesHowManyItemsFit) {
  const double work[] = {1, 2, 3, 4};
  const Items items(4, work);
  EXPECT_EQ(items.work(1, 3), 5);
  EXPECT_EQ(items.within(0, 6), 3u);
  EXPECT_EQ(items.within(0, 5.9), 2u);
  EXPECT_EQ(items.within(3, 0.1), 1u);
  EXPECT_EQ(items.within(2, 100), 2u);
  EXPECT_EQ(items.within(1, -5), 1u);
  EXPECT_EQ(Items(4, nullptr).within(1, -5), 1u);
  const double bad[] = {1, 0};
  EXPECT_THROW(Items(2, bad), Error);
  EXPECT_THROW(Items(Items::kMost + 1, nullptr), Error);
}

}  // namespace
}  // namespace weir::rt
