#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "trace/sketch.hpp"
#include "trace/summary.hpp"

namespace weir::rt::trace {
namespace {

TEST(Summary, EmptyRecording_IsAllZero) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.actions, 0u);
  EXPECT_EQ(summary.dropped, 0u);
  EXPECT_EQ(summary.measured_s, 0);
  EXPECT_EQ(summary.compute_s, 0);
  EXPECT_EQ(summary.transfer_s, 0);
  EXPECT_EQ(summary.ideal_s, 0);
  EXPECT_EQ(summary.overlap_ratio, 0);
  EXPECT_EQ(summary.hidden_s, 0);
  EXPECT_EQ(summary.idle_share, 0);
  EXPECT_EQ(summary.critical_path_s, 0);
  EXPECT_EQ(summary.busiest_place, "");
  EXPECT_EQ(summary.busiest_link, "");
}

TEST(Summary, WithoutOverlap_NoTransferTimeIsHidden) {
  Sketch sketch;
  const auto place = sketch.place("sim:0/p0", "sim:0");
  const auto link = sketch.link("sim:0 in", "sim:0");
  sketch.transfer(link, 0, 10'000);
  sketch.compute(place, 10'000, 20'000, {1});
  const Summary summary = summarize(sketch.recording());
  EXPECT_EQ(summary.actions, 2u);
  EXPECT_DOUBLE_EQ(summary.measured_s, 20e-6);
  EXPECT_DOUBLE_EQ(summary.compute_s, 10e-6);
  EXPECT_DOUBLE_EQ(summary.transfer_s, 10e-6);
  EXPECT_DOUBLE_EQ(summary.busiest_place_s, 10e-6);
  EXPECT_DOUBLE_EQ(summary.busiest_link_s, 10e-6);
  EXPECT_DOUBLE_EQ(summary.ideal_s, 10e-6);
  EXPECT_DOUBLE_EQ(summary.overlap_ratio, 2);
  EXPECT_DOUBLE_EQ(summary.hidden_s, 0);
  EXPECT_DOUBLE_EQ(summary.idle_share, 0.5);
  EXPECT_DOUBLE_EQ(summary.critical_path_s, 20e-6);
  EXPECT_EQ(summary.busiest_place, "sim:0/p0");
  EXPECT_EQ(summary.busiest_link, "sim:0 in");
}

TEST(Summary, WithFullOverlap_AllTransferTimeIsHidden) {
  Sketch sketch;
  const auto place = sketch.place("sim:0/p0", "sim:0");
  const auto in = sketch.link("sim:0 in", "sim:0");
  const auto out = sketch.link("sim:0 out", "sim:0");
  sketch.compute(place, 0, 100);
  sketch.transfer(in, 10, 40);
  sketch.transfer(out, 30, 60);
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.measured_s, 100e-9);
  EXPECT_DOUBLE_EQ(summary.ideal_s, 100e-9);
  EXPECT_DOUBLE_EQ(summary.overlap_ratio, 1);
  EXPECT_DOUBLE_EQ(summary.transfer_s, 60e-9);
  EXPECT_DOUBLE_EQ(summary.busiest_link_s, 30e-9);
  EXPECT_DOUBLE_EQ(summary.hidden_s, 50e-9);
  EXPECT_DOUBLE_EQ(summary.idle_share, 0);
  EXPECT_DOUBLE_EQ(summary.critical_path_s, 100e-9);
  EXPECT_EQ(summary.busiest_link, "sim:0 in");
}

TEST(Summary, PartialOverlap_CountsOnlyTheHiddenPart) {
  Sketch sketch;
  const auto one = sketch.place("a/p0", "a");
  const auto two = sketch.place("b/p0", "b");
  const auto link = sketch.link("a in", "a");
  sketch.compute(one, 0, 10);
  sketch.compute(two, 5, 20);
  sketch.compute(one, 40, 50);
  sketch.transfer(link, 15, 45);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).hidden_s, 10e-9);
}

TEST(Summary, CoresComputingAtOnce_CountTheirPlaceBusyOnce) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host", 2);
  sketch.compute(place, 0, 10);
  sketch.compute(place, 5, 15).core = 1;
  sketch.compute(place, 18, 20).core = 1;
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.compute_s, 22e-9);
  EXPECT_DOUBLE_EQ(summary.busiest_place_s, 17e-9);
  EXPECT_DOUBLE_EQ(summary.idle_share, 1 - 22.0 / 40);
}

TEST(Summary, IdleShare_IsWeightedByTheCoresOfPlaces) {
  Sketch sketch;
  const auto small = sketch.place("host/small", "host", 1);
  const auto large = sketch.place("host/large", "host", 3);
  sketch.compute(small, 0, 100);
  sketch.compute(large, 0, 100);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).idle_share, 0.5);
}

TEST(Summary, CountsAllCoresOfAParallelKernelAsBusy) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host", 2);
  sketch.compute(place, 0, 10).cores = 2;
  sketch.compute(place, 10, 20);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).idle_share, 0.25);
}

TEST(Summary, UnusedPlace_IsNotCountedAsIdle) {
  Sketch sketch;
  sketch.place("host/default", "host", 16);
  const auto used = sketch.place("host/p0", "host");
  sketch.compute(used, 0, 100);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).idle_share, 0);
}

TEST(Summary, PlaceWithOnlyPoisonedActions_CountsAsIdle) {
  Sketch sketch;
  const auto used = sketch.place("host/p0", "host");
  const auto poisoned = sketch.place("host/p1", "host");
  sketch.compute(used, 0, 100).status = WEIR_STATUS_KERNEL_ERROR;
  sketch.compute(poisoned, 100, 100, {1}).status = WEIR_STATUS_POISONED;
  const Summary summary = summarize(sketch.recording());
  EXPECT_EQ(summary.actions, 2u);
  EXPECT_DOUBLE_EQ(summary.idle_share, 0.5);
  EXPECT_DOUBLE_EQ(summary.critical_path_s, 100e-9);
}

TEST(Summary, PlaceOfUnknownWidth_CountsAsOneCore) {
  Sketch sketch;
  const auto place = sketch.place("cuda:0/p0", "cuda:0", 0);
  sketch.compute(place, 0, 60);
  sketch.sync(place, 100);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).idle_share, 0.4);
}

TEST(Summary, OverlappingKernelsOnOneCore_CountAtMostFullyBusy) {
  Sketch sketch;
  const auto place = sketch.place("cuda:0/p0", "cuda:0");
  const auto host = sketch.place("host/p0", "host");
  sketch.compute(place, 0, 80);
  sketch.compute(place, 20, 100);
  sketch.compute(host, 0, 50);
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.busiest_place_s, 100e-9);
  EXPECT_DOUBLE_EQ(summary.idle_share, 0.25);
}

TEST(Summary, MeasuresFromTheFirstEnqueueToTheLastEnd) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  sketch.compute(place, 1000, 1100).enqueued = 600;
  sketch.compute(place, 1100, 1200).enqueued = 700;
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.measured_s, 600e-9);
  EXPECT_DOUBLE_EQ(summary.overlap_ratio, 3);
}

TEST(Summary, FindsTheLongestPathThroughADiamond) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host", 2);
  sketch.compute(place, 0, 10);
  sketch.compute(place, 10, 15, {1});
  sketch.compute(place, 10, 30, {1});
  sketch.compute(place, 30, 37, {2, 3});
  sketch.compute(place, 0, 36);
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).critical_path_s, 37e-9);
}

TEST(Summary, SyncsAtTheSameTime_AreFollowedOnTheCriticalPath) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  sketch.compute(place, 0, 10);
  // The marker has the larger id although the wait comes after it.
  sketch.sync(place, 10, {3});
  sketch.sync(place, 10, {1});
  sketch.compute(place, 10, 30, {2});
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).critical_path_s, 30e-9);
}

TEST(Summary, DependencesOnUnrecordedActions_AreIgnored) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  sketch.compute(place, 0, 10, {77});
  sketch.compute(place, 10, 20, {1, 78});
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).critical_path_s, 20e-9);
}

TEST(Summary, CyclesAndNegativeDurations_StillGiveASummary) {
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  sketch.compute(place, 0, 10, {2});
  sketch.compute(place, 10, 20, {1});
  sketch.compute(place, 20, 25, {3});
  sketch.compute(place, 40, 30);
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.compute_s, 25e-9);
  EXPECT_GE(summary.critical_path_s, 10e-9);
}

TEST(Summary, ChainOf200000Actions_GivesItsFullCriticalPath) {
  constexpr std::int64_t kActions = 200'000;
  Sketch sketch;
  const auto place = sketch.place("host/p0", "host");
  sketch.compute(place, 0, 2);
  for (std::int64_t index = 1; index < kActions; ++index) {
    sketch.compute(place, 2 * index, 2 * index + 2, {static_cast<std::uint64_t>(index)});
  }
  EXPECT_DOUBLE_EQ(summarize(sketch.recording()).critical_path_s, 2e-9 * kActions);
}

TEST(Summary, SyncsOnly_OverlapRatioIsZero) {
  Sketch sketch;
  sketch.sync(12345, 10);
  sketch.sync(12345, 30);
  const Summary summary = summarize(sketch.recording());
  EXPECT_DOUBLE_EQ(summary.measured_s, 20e-9);
  EXPECT_EQ(summary.overlap_ratio, 0);
}

TEST(Summary, DroppedActions_AreReportedInTheSummary) {
  Sketch sketch;
  sketch.drop(41);
  EXPECT_EQ(summarize(sketch.recording()).dropped, 41u);
}

/// Time as an array of nanoseconds.
TEST(Summary, RandomRecordings_AgreeWithCountingEachNanosecond) {
  constexpr std::size_t kTime = 300;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Sketch sketch;
    std::array<std::array<bool, kTime>, 4> busy{};
    for (const char* name : {"p0", "p1"}) sketch.place(name, "sim:0", 4);
    for (const char* name : {"in", "out"}) sketch.link(name, "sim:0");
    for (int action = 0; action < 12; ++action) {
      const auto track = static_cast<std::uint32_t>(random() % 4);
      const std::size_t started = random() % 250, ended = started + random() % 50;
      const auto begin = static_cast<std::int64_t>(started), end = static_cast<std::int64_t>(ended);
      track < 2 ? sketch.compute(track, begin, end) : sketch.transfer(track, begin, end);
      std::fill(busy[track].begin() + begin, busy[track].begin() + end, true);
    }
    const auto length = [&](std::size_t track) {
      return static_cast<double>(std::count(busy[track].begin(), busy[track].end(), true)) * 1e-9;
    };
    double hidden = 0;
    for (std::size_t ns = 0; ns < kTime; ++ns) {
      if ((busy[0][ns] || busy[1][ns]) && (busy[2][ns] || busy[3][ns])) hidden += 1e-9;
    }
    const Summary summary = summarize(sketch.recording());
    EXPECT_NEAR(summary.busiest_place_s, std::max(length(0), length(1)), 1e-12) << seed;
    EXPECT_NEAR(summary.busiest_link_s, std::max(length(2), length(3)), 1e-12) << seed;
    EXPECT_NEAR(summary.hidden_s, hidden, 1e-12) << seed;
  }
}

}  // namespace
}  // namespace weir::rt::trace
