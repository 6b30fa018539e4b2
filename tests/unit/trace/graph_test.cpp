#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "trace/graph.hpp"
#include "trace/sketch.hpp"

namespace weir::rt::trace {
namespace {

std::vector<std::uint32_t> places_in(const Graph& graph, std::size_t entries) {
  std::vector<std::uint32_t> place(entries, ~0u);
  for (std::uint32_t rank = 0; rank < graph.order().size(); ++rank) {
    place[graph.order()[rank]] = rank;
  }
  return place;
}

TEST(Graph, SparseIds_AreMatchedAndUnknownIdsIgnored) {
  Sketch sketch;
  sketch.compute(0, 0, 1).id = 10;
  sketch.compute(0, 1, 2, {5, 10, 15}).id = 20;
  sketch.compute(0, 2, 3, {20, 10, 99}).id = 30;
  const Graph graph(sketch.recording());
  ASSERT_EQ(graph.arrows().size(), 3u);
  EXPECT_EQ(graph.arrows()[0].earlier, 0u);
  EXPECT_EQ(graph.arrows()[0].later, 1u);
  EXPECT_EQ(graph.arrows()[1].earlier, 1u);
  EXPECT_EQ(graph.arrows()[1].later, 2u);
  EXPECT_EQ(graph.arrows()[2].earlier, 0u);
  EXPECT_EQ(graph.arrows()[2].later, 2u);
  EXPECT_EQ(graph.arriving(0).size(), 0u);
  EXPECT_EQ(graph.arriving(2).size(), 2u);
  EXPECT_EQ(*graph.arriving(2).begin(), 1u);
  const auto leaving = graph.leaving(0);
  EXPECT_EQ(std::vector<std::uint32_t>(leaving.begin(), leaving.end()),
            (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(graph.leaving(2).empty());
}

TEST(Graph, RandomDependences_OrderIsTopological) {
  constexpr std::uint32_t kEntries = 300;
  std::mt19937 random(7);
  Sketch sketch;
  for (std::uint32_t index = 0; index < kEntries; ++index) {
    std::vector<std::uint64_t> after;
    for (int tries = 0; tries < 3; ++tries) after.push_back(1 + random() % (index + 1));
    std::erase(after, index + 1);
    sketch.compute(0, 0, static_cast<std::int64_t>(random() % 10), after);
  }
  const Graph graph(sketch.recording());
  EXPECT_EQ(graph.order().size(), kEntries);
  const std::vector<std::uint32_t> place = places_in(graph, kEntries);
  EXPECT_EQ(std::count(place.begin(), place.end(), ~0u), 0);
  for (const Arrow& arrow : graph.arrows()) EXPECT_LT(place[arrow.earlier], place[arrow.later]);
}

TEST(Graph, DependenceCycles_AreOrderedLast) {
  Sketch sketch;
  sketch.compute(0, 0, 1, {2});
  sketch.compute(0, 1, 2, {1});
  sketch.compute(0, 2, 3, {3});
  sketch.compute(0, 3, 4);
  EXPECT_EQ(Graph(sketch.recording()).order(), (std::vector<std::uint32_t>{3, 0, 1, 2}));
}

TEST(Graph, EmptyRecording_GivesAnEmptyGraph) {
  const Graph graph{Recording{}};
  EXPECT_TRUE(graph.arrows().empty());
  EXPECT_TRUE(graph.order().empty());
}

}  // namespace
}  // namespace weir::rt::trace
