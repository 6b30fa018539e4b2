// The patterns of bench/metg: what a task reads, and what has to be complete before it starts.
#include "metg/patterns.hpp"

#include <set>

#include <gtest/gtest.h>

#include "metg/graph.hpp"

namespace weir_bench::metg {
namespace {

using Reads = std::vector<std::uint32_t>;

Shape shape_of(Pattern pattern, std::uint32_t width = 8, std::uint32_t steps = 20,
               std::uint32_t radix = 3) {
  return {pattern, width, steps, radix, 1};
}

std::uint64_t dependences(const Shape& shape) {
  const Graph graph(shape);
  std::uint64_t count = 0;
  graph.for_each_task([&](std::uint32_t step, std::uint32_t point) {
    count += graph.predecessors(step, point).size();
  });
  return count;
}

std::vector<Pattern> all_patterns() {
  std::vector<Pattern> patterns;
  for (std::string_view name : pattern_names) patterns.push_back(parse_pattern(name));
  return patterns;
}

TEST(MetgPatterns, Names_AreThoseOfTaskBench) {
  EXPECT_EQ(parse_pattern("trivial"), Pattern::trivial);
  EXPECT_EQ(parse_pattern("dom"), Pattern::dom);
  EXPECT_EQ(parse_pattern("random_nearest"), Pattern::random_nearest);
  EXPECT_THROW(parse_pattern("star"), std::invalid_argument);
}

TEST(MetgPatterns, DependenceCounts_FollowFromWidthAndSteps) {
  constexpr std::uint64_t between = 19;  // pairs of neighbouring steps
  EXPECT_EQ(dependences(shape_of(Pattern::trivial)), 0U);
  EXPECT_EQ(dependences(shape_of(Pattern::no_comm)), 8 * between);
  EXPECT_EQ(dependences(shape_of(Pattern::stencil_1d)), (3 * 8 - 2) * between);
  EXPECT_EQ(dependences(shape_of(Pattern::stencil_1d_periodic)), 3 * 8 * between);
  EXPECT_EQ(dependences(shape_of(Pattern::all_to_all)), 8 * 8 * between);
  EXPECT_EQ(dependences(shape_of(Pattern::nearest, 8, 20, 5)), (5 * 8 - 6) * between);
  EXPECT_EQ(dependences(shape_of(Pattern::nearest, 8, 20, 4)), (4 * 8 - 4) * between);
  EXPECT_EQ(dependences(shape_of(Pattern::spread, 8, 20, 1)), 8 * between);
}

TEST(MetgPatterns, Fft_ReadsAtTwiceTheDistanceInEachStep) {
  const Shape shape = shape_of(Pattern::fft);
  EXPECT_EQ(predecessors_of(shape, 1, 3), (Reads{2, 3, 4}));
  EXPECT_EQ(predecessors_of(shape, 2, 3), (Reads{1, 3, 5}));
  EXPECT_EQ(predecessors_of(shape, 3, 3), (Reads{3, 7}));
  EXPECT_EQ(predecessors_of(shape, 4, 3), (Reads{2, 3, 4}));
}

TEST(MetgPatterns, Tree_DoublesUpToTheWidth) {
  const Shape shape = shape_of(Pattern::tree, 6);
  EXPECT_EQ(points_of(shape, 0).count, 1U);
  EXPECT_EQ(points_of(shape, 2).count, 4U);
  EXPECT_EQ(points_of(shape, 3).count, 6U);
  EXPECT_EQ(points_of(shape, 40).count, 6U);
  EXPECT_EQ(predecessors_of(shape, 3, 5), (Reads{2}));
}

TEST(MetgPatterns, Dom_IsAWavefrontAtBothEnds) {
  const Shape shape = shape_of(Pattern::dom, 4, 10);
  EXPECT_EQ(points_of(shape, 0).count, 1U);
  EXPECT_EQ(points_of(shape, 2).count, 3U);
  EXPECT_EQ(points_of(shape, 5).count, 4U);
  EXPECT_EQ(points_of(shape, 9).first, 3U);
  EXPECT_EQ(points_of(shape, 9).count, 1U);
  EXPECT_EQ(predecessors_of(shape, 2, 2), (Reads{1}));  // point 2 begins
  EXPECT_EQ(predecessors_of(shape, 5, 2), (Reads{1, 2}));
  EXPECT_EQ(Graph(shape).tasks(), 4U * (10 - 4 + 1));
}

TEST(MetgPatterns, Spread_ReadsOtherPointsInEachStep) {
  const Shape shape = shape_of(Pattern::spread, 9);
  EXPECT_EQ(predecessors_of(shape, 1, 0), (Reads{0, 4, 7}));
  EXPECT_EQ(predecessors_of(shape, 2, 0), (Reads{0, 5, 8}));
}

TEST(MetgPatterns, RandomNearest_IsAReproduciblePartOfNearest) {
  const Shape random = shape_of(Pattern::random_nearest, 16, 100, 5);
  const Shape nearest = shape_of(Pattern::nearest, 16, 100, 5);
  for (std::uint32_t step = 1; step < 100; ++step) {
    for (std::uint32_t point = 0; point < 16; ++point) {
      const Reads some = predecessors_of(random, step, point);
      const Reads all = predecessors_of(nearest, step, point);
      EXPECT_TRUE(std::includes(all.begin(), all.end(), some.begin(), some.end()));
      EXPECT_EQ(some, predecessors_of(random, step, point));
    }
  }
  const double part =
      static_cast<double>(dependences(random)) / static_cast<double>(dependences(nearest));
  EXPECT_NEAR(part, 0.5, 0.05);
  Shape other = random;
  other.seed = 2;
  EXPECT_NE(dependences(other), dependences(random));
}

TEST(MetgPatterns, SymmetricPatterns_ReadEachOther) {
  for (Pattern pattern : {Pattern::no_comm, Pattern::stencil_1d, Pattern::stencil_1d_periodic,
                          Pattern::fft, Pattern::all_to_all, Pattern::nearest}) {
    const Shape shape = shape_of(pattern, 11, 20, 5);
    for (std::uint32_t step = 1; step < shape.steps; ++step) {
      for (std::uint32_t point = 0; point < shape.width; ++point) {
        for (std::uint32_t read : predecessors_of(shape, step, point)) {
          const Reads back = predecessors_of(shape, step, read);
          EXPECT_TRUE(std::find(back.begin(), back.end(), point) != back.end())
              << pattern_names[static_cast<std::size_t>(pattern)] << ", step " << step << ": "
              << point << " reads " << read;
        }
      }
    }
  }
}

TEST(MetgGraph, Successors_AreThePredecessorsTheOtherWay) {
  for (Pattern pattern : all_patterns()) {
    const Graph graph(shape_of(pattern, 9, 20, 4));
    std::set<std::array<std::uint32_t, 3>> forward, backward;
    graph.for_each_task([&](std::uint32_t step, std::uint32_t point) {
      for (std::uint32_t read : graph.predecessors(step, point)) {
        EXPECT_TRUE(graph.points(step - 1).contains(read));
        forward.insert({step, read, point});
      }
      for (std::uint32_t reader : graph.successors(step, point)) {
        backward.insert({step + 1, point, reader});
      }
    });
    EXPECT_EQ(forward, backward) << pattern_names[static_cast<std::size_t>(pattern)];
  }
}

/// Whether `later` follows from `earlier` by the tasks that must precede others.
bool follows(const Graph& graph, std::uint32_t fields, const TaskId& earlier, const TaskId& later) {
  if (later == earlier) return true;
  if (later.step <= earlier.step) return false;
  for (const TaskId& before : graph.must_precede(later.step, later.point, fields)) {
    if (follows(graph, fields, earlier, before)) return true;
  }
  return false;
}

TEST(MetgGraph, MustPrecede_OrdersReadersAndWritersOfAnOverwrittenOutput) {
  for (Pattern pattern : all_patterns()) {
    for (std::uint32_t fields : {2U, 3U}) {
      const Graph graph(shape_of(pattern, 5, 8, 3));
      graph.for_each_task([&](std::uint32_t step, std::uint32_t point) {
        if (step < fields || !graph.points(step - fields).contains(point)) return;
        const TaskId task = {0, step, point};
        EXPECT_TRUE(follows(graph, fields, {0, step - fields, point}, task))
            << pattern_names[static_cast<std::size_t>(pattern)];
        for (std::uint32_t reader : graph.successors(step - fields, point)) {
          EXPECT_TRUE(follows(graph, fields, {0, step - fields + 1, reader}, task))
              << pattern_names[static_cast<std::size_t>(pattern)];
        }
      });
    }
  }
}

TEST(MetgGraph, ImpossibleShapes_AreRefused) {
  EXPECT_THROW(Graph(shape_of(Pattern::trivial, 0)), std::invalid_argument);
  EXPECT_THROW(Graph(shape_of(Pattern::trivial, 4, 0)), std::invalid_argument);
  EXPECT_THROW(Graph(shape_of(Pattern::spread, 4, 4, 0)), std::invalid_argument);
  EXPECT_THROW(Graph(shape_of(Pattern::dom, 8, 7)), std::invalid_argument);
}

TEST(MetgGraph, PackedTask_UnpacksUnchanged) {
  const TaskId task = {255, 0xfedcba98U, 0xffffffU};
  EXPECT_EQ(unpack(pack(task)), task);
}

}  // namespace
}  // namespace weir_bench::metg
