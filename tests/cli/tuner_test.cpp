// The tuner's search on times that are formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "tuner/model.hpp"
#include "tuner/search.hpp"

namespace weir::cli::tuner {
namespace {

constexpr std::size_t kUsualTiles = 8;
constexpr Space kSpace{
    .cores = 56, .most_places = 56, .threads = 56, .most_tiles = 32, .noisy = false};

/// A program of T^2 tasks on P places: each place has its share of the tasks and of the cores, each
/// task a cost of its own, and the link brings all data.
struct Program {
  double work = 1, link = 0.01, per_task = 2e-5;
  std::function<double(const Point&)> noise = [](const Point&) { return 1.0; };
  std::function<bool(const Point&)> possible = [](const Point&) { return true; };
  std::size_t measured = 0;
  std::set<Point> asked;

  Program() = default;
  Program(double work_s, double link_s, double per_task_s)
      : work(work_s), link(link_s), per_task(per_task_s) {}

  Evaluation evaluate(const Point& point) {
    ++measured;
    asked.insert(point);
    const std::size_t tiles = point.tiles == 0 ? kUsualTiles : point.tiles;
    const double tasks = static_cast<double>(tiles * tiles),
                 places = static_cast<double>(point.places);
    const double cores = std::max(1.0, std::floor(56 / places));
    const double task_s = work / tasks + per_task;
    const double rounds = std::ceil(std::ceil(tasks / places) / cores);
    const double seconds = std::max(link, rounds * task_s) + link / tasks + task_s;
    return {.point = point,
            .tiles = tiles,
            .samples = {seconds * noise(point)},
            .link_s = link,
            .compute_s = tasks * task_s,
            .critical_s = 2 * link / tasks + task_s};
  }

  Source source() {
    return {.measure = [this](const Point& point) -> std::optional<Evaluation> {
              if (!possible(point)) return {};
              return evaluate(point);
            },
            .may_go_on = [] { return true; }};
  }

  Search searched(const Space& space, std::size_t most) {
    Search search(space, {evaluate(kDefault)}, source());
    search.run(most);
    return search;
  }

  double optimum(const Space& space) {
    Search search(space, {evaluate(kDefault)}, source());
    search.run_exhaustively();
    return search.best().seconds();
  }
};

TEST(TunerSearch, SpaceWithoutTiles_SearchVariesPlacesButNeverTiles) {
  Space space = kSpace;
  space.most_tiles = 0;
  Program program;
  const Search search = program.searched(space, 50);
  program.optimum(space);
  std::set<std::size_t> places;
  for (const Point& point : program.asked) {
    EXPECT_EQ(point.tiles, 0u);
    places.insert(point.places);
  }
  EXPECT_EQ(places.size(), 56u);
  EXPECT_GT(search.evaluations().size(), 5u);
}

TEST(TunerSearch, StreamsWithoutEffect_AreNeverVaried) {
  Program program;
  Source source = program.source();
  source.streams = false;
  Search search(kSpace, {program.evaluate(kDefault)}, source);
  search.run(50);
  for (const Point& point : program.asked) EXPECT_EQ(point.streams, kDefault.streams);
  EXPECT_GT(program.asked.size(), 5U);
}

TEST(TunerSearch, TenthOfTheSpace_FindsWithin5PercentOfTheOptimum) {
  for (const double link : {0.001, 0.01, 0.1}) {
    for (const double per_task : {1e-6, 1e-4, 1e-3}) {
      Program program(1, link, per_task);
      const Search search = program.searched(kSpace, kSpace.size() / 10 - 1);
      EXPECT_LE(program.measured, kSpace.size() / 10);
      const double optimum = Program(1, link, per_task).optimum(kSpace);
      EXPECT_LE(search.best().seconds(), 1.05 * optimum) << link << ' ' << per_task;
    }
  }
}

TEST(TunerSearch, MeasuresOnlyPlacesThatDivideTheCores) {
  Program program;
  program.searched(kSpace, 100);
  for (const Point& point : program.asked) {
    EXPECT_EQ(56 % point.places, 0U);
    EXPECT_GE(point.streams, 1U);
    EXPECT_LE(point.tiles, kSpace.most_tiles);
  }
}

TEST(TunerSearch, Budget_IsNotExceededAndBestIsNotSlowerThanDefault) {
  for (const std::size_t most : {0u, 1u, 5u, 30u}) {
    Program program;
    const Search search = program.searched(kSpace, most);
    EXPECT_LE(program.measured, most + 1);
    EXPECT_LE(search.best().seconds(), search.find(kDefault)->seconds());
  }
}

TEST(TunerSearch, TileShapes_AreWidenedAsLongAsThatHelps) {
  for (const std::size_t fastest : {1u, 4u, 16u}) {
    Program program;
    program.noise = [&](const Point& point) {
      return 1 + 0.1 * std::abs(std::log2(static_cast<double>(point.aspect) /
                                          static_cast<double>(fastest)));
    };
    Source source = program.source();
    source.shapes = true;
    Search search(kSpace, {program.evaluate(kDefault)}, source);
    search.run(100);
    EXPECT_EQ(search.best().point.aspect, fastest);
    std::set<std::size_t> tried;
    for (const Point& point : program.asked) tried.insert(point.aspect);
    EXPECT_EQ(*tried.rbegin(), std::min<std::size_t>(64, 4 * fastest));
  }
  Program squares;
  squares.searched(kSpace, 100);
  for (const Point& point : squares.asked) EXPECT_EQ(point.aspect, 1U);
}

TEST(TunerSearch, NoTimeLeft_MeasuresNothingAndKeepsTheDefault) {
  Program program;
  Source source = program.source();
  source.may_go_on = [] { return false; };
  Search search(kSpace, {program.evaluate(kDefault)}, source);
  search.run(100);
  EXPECT_EQ(search.best().point, kDefault);
  EXPECT_EQ(program.measured, 1U);
}

TEST(TunerSearch, ImpossibleDivisions_AreSkipped) {
  Program program;
  program.possible = [](const Point& point) { return point.places == 1 && point.tiles % 2 == 0; };
  const Search search = program.searched(kSpace, 100);
  for (const Evaluation& each : search.evaluations()) EXPECT_TRUE(program.possible(each.point));
  EXPECT_LE(search.best().seconds(), search.find(kDefault)->seconds());
}

/// How many of 20 searches, with noise of 5 %, leave the default where all else takes `longer`.
std::size_t misled(double longer) {
  Space space = kSpace;
  space.noisy = true;
  std::size_t count = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1, 0.05);
    Program flat(0, 1, 0);
    flat.noise = [&](const Point& point) {
      return (point == kDefault ? 1 : longer) * std::max(0.5, noise(random));
    };
    count += flat.searched(space, 60).best().point != kDefault ? 1 : 0;
  }
  return count;
}

TEST(TunerSearch, KeepsTheDefaultUnlessSomethingIsClearlyFaster) {
  EXPECT_EQ(misled(1.05), 0U);
  EXPECT_GE(misled(0.9), 18U);
}

TEST(TunerSearch, NoisyTimes_BestDivisionsAreMeasuredAgain) {
  Space space = kSpace;
  space.noisy = true;
  const double optimum = Program{}.optimum(kSpace);
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> noise(0, 0.1);
    Program program;
    program.noise = [&](const Point&) { return noise(random); };
    const Search search = program.searched(space, 100);
    const double quiet = Program{}.evaluate(search.best().point).seconds();
    EXPECT_LE(quiet, 1.1 * optimum) << seed;
    EXPECT_GE(search.best().samples.size(), 4U);
  }
}

TEST(TunerSearch, KnownEvaluations_SecondSearchMeasuresLessThanHalf) {
  Program first;
  const Search before = first.searched(kSpace, 100);
  Program second;
  Search again(kSpace, before.evaluations(), second.source());
  again.run(100);
  EXPECT_LT(second.measured, first.measured / 2);
  EXPECT_LE(again.best().seconds(), before.best().seconds());
}

TEST(TunerModel, IsExactAtMeasuredTilesAndFollowsAPowerLawBetween) {
  const auto at = [](std::size_t tiles, double compute) {
    return Evaluation{.point = {1, 2, tiles},
                      .tiles = tiles,
                      .samples = {compute},
                      .link_s = 0,
                      .compute_s = compute,
                      .critical_s = 0};
  };
  const std::vector<Evaluation> known = {at(2, 1), at(8, 16)};
  const Model model(known, 1);
  EXPECT_NEAR(model.predict({1, 2, 2}), 1, 0.01);
  EXPECT_NEAR(model.predict({1, 2, 4}), 4, 0.01);
  EXPECT_NEAR(model.predict({1, 2, 8}), 16, 0.01);
}

TEST(TunerEvaluation, Seconds_AreTheMedianSampleOrInfinite) {
  Evaluation evaluation;
  evaluation.samples = {3, 1, 2};
  EXPECT_EQ(evaluation.seconds(), 2);
  evaluation.samples = {4, 1};
  EXPECT_EQ(evaluation.seconds(), 2.5);
  EXPECT_TRUE(std::isinf(Evaluation{}.seconds()));
}

}  // namespace
}  // namespace weir::cli::tuner
