#include "tasks/performance_model.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

using Curve = PerformanceModel::Curve;

TEST(PerformanceModel, WithoutMeasurements_EstimateIsUnknown) {
  PerformanceModel models;
  EXPECT_EQ(models.curve("gemm", "host").estimate(100), -1);
}

TEST(PerformanceModel, AveragesTimesOfASize) {
  Curve curve;
  curve.note(64, 100);
  curve.note(64, 200);
  EXPECT_EQ(curve.estimate(64), 150);
}

TEST(PerformanceModel, LongFirstTime_IsDiscarded) {
  Curve curve;
  curve.note(64, 100'000);
  curve.note(64, 100);
  EXPECT_EQ(curve.estimate(64), 100);
  curve.note(64, 300);
  EXPECT_EQ(curve.estimate(64), 200);
  curve.note(64, 50);
  EXPECT_EQ(curve.estimate(64), 150);
}

TEST(PerformanceModel, FallingTimes_OnlyTheFirstIsDiscarded) {
  PerformanceModel models;
  Curve& curve = models.curve("gemm", "host");
  for (const std::int64_t ns : {100'000, 500, 400, 300}) curve.note(64, ns);
  EXPECT_EQ(curve.estimate(64), 400) << "the mean of all but the first";
  models.each([](const auto&, const auto&, std::uint64_t, std::uint64_t count, double) {
    EXPECT_EQ(count, 3u);
  });
  for (int i = 0; i < 1000; ++i) curve.note(64, 10);
  EXPECT_LT(curve.estimate(64), 20);
}

TEST(PerformanceModel, ManyNewTimes_OutweighOldOnes) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.note(64, 1000);
  for (int i = 0; i < 300; ++i) curve.note(64, 10);
  EXPECT_LT(curve.estimate(64), 20);
  EXPECT_GE(curve.estimate(64), 10);
}

TEST(PerformanceModel, IsolatedOutliers_HardlyChangeTheEstimate) {
  Curve curve;
  for (int i = 0; i < 8; ++i) curve.note(64, 1000);
  curve.note(64, 1'000'000);
  EXPECT_LT(curve.estimate(64), 1200);
  for (int i = 0; i < 8; ++i) curve.note(64, 1000);
  curve.note(64, 1);
  EXPECT_GT(curve.estimate(64), 900);
  for (int i = 0; i < 12; ++i) curve.note(64, i % 3 == 0 ? 1000 : 1'000'000);
  EXPECT_LT(curve.estimate(64), 4000) << "no more than two in a row";
}

TEST(PerformanceModel, ManyOutliersInARow_BecomeTheEstimate) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.note(64, 1000);
  for (int i = 0; i < 12; ++i) curve.note(64, 1'000'000);
  EXPECT_GT(curve.estimate(64), 900'000);
}

TEST(PerformanceModel, Source_DistinguishesMeasuredEarlierAndGuessedTimes) {
  using Source = PerformanceModel::Source;
  PerformanceModel models;
  Curve& curve = models.curve("gemm", "host x1");
  EXPECT_EQ(curve.source(1000), Source::nothing);
  models.read("weir performance models 1\na\ngemm\thost x1\t1000\t32\t15000\n", "a", "file");
  EXPECT_EQ(curve.source(1000), Source::earlier);
  EXPECT_EQ(curve.source(2000), Source::guess);
  curve.note(1000, 300);
  EXPECT_EQ(curve.source(1000), Source::measured);
  EXPECT_EQ(curve.source(2000), Source::guess);
}

TEST(PerformanceModel, TimeReadFromFile_CountsAsOneMeasurement) {
  PerformanceModel models;
  Curve& curve = models.curve("gemm", "host x1");
  models.read("weir performance models 1\na\ngemm\thost x1\t1000\t32\t1000\n", "a", "file");
  EXPECT_EQ(curve.estimate(1000), 1000);
  curve.note(1000, 1500);
  EXPECT_EQ(curve.estimate(1000), 1250);
  PerformanceModel others;
  Curve& faster = others.curve("gemm", "host x1");
  others.read("weir performance models 1\na\ngemm\thost x1\t1000\t32\t15000\n", "a", "file");
  faster.note(1000, 300);
  EXPECT_EQ(faster.estimate(1000), 300);
}

TEST(PerformanceModel, TimesBelowOneNanosecond_CountAsOne) {
  Curve curve;
  curve.note(0, 0);
  curve.note(0, -5);
  EXPECT_EQ(curve.estimate(0), 1);
}

TEST(PerformanceModel, OneMeasuredSize_EstimateIsProportionalToBytes) {
  Curve curve;
  curve.note(999, 1000);
  EXPECT_NEAR(static_cast<double>(curve.estimate(1999)), 2000, 1);
  EXPECT_NEAR(static_cast<double>(curve.estimate(499)), 500, 1);
}

TEST(PerformanceModel, SeveralSizes_EstimateFollowsTheirPowerLaw) {
  Curve curve;
  for (const std::uint64_t bytes : {9u, 99u, 999u}) {
    const auto base = static_cast<std::int64_t>(bytes + 1);
    curve.note(bytes, base * base);
  }
  EXPECT_NEAR(static_cast<double>(curve.estimate(9999)), 1e8, 3e6);
  EXPECT_EQ(curve.estimate(99), 10000);  // the history of a size that was seen
}

TEST(PerformanceModel, NearlyEqualSizes_ExtrapolateAboutProportionally) {
  Curve same, close;
  same.note(1000, 100);
  same.note(1001, 400);
  close.note(1000, 100);
  close.note(1100, 150);
  for (const Curve& curve : {same, close}) {
    EXPECT_GT(curve.estimate(1'000'000), 100'000);
    EXPECT_LT(curve.estimate(1'000'000), 1'000'000) << "about proportional to the bytes";
  }
  EXPECT_EQ(close.estimate(1000), 100);
  EXPECT_EQ(close.estimate(1100), 150);
}

TEST(PerformanceModel, TimesThatFallWithTheSizeAreTakenAsConstant) {
  Curve curve;
  curve.note(9, 1000);
  curve.note(99, 10);
  EXPECT_NEAR(static_cast<double>(curve.estimate(99999)), 100, 1);
}

TEST(PerformanceModel, FarExtrapolation_StaysPositiveAndCannotOverflow) {
  Curve curve;
  curve.note(1, 1);
  curve.note(2, INT64_MAX);
  EXPECT_GT(curve.estimate(UINT64_MAX), 0);
  EXPECT_LE(curve.estimate(UINT64_MAX), std::int64_t{1'000'000'000'000'000})
      << "sums of many estimates must not overflow";
  curve.note(1'000'000'000, 1);
  EXPECT_GE(curve.estimate(0), 1);
}

TEST(PerformanceModel, Estimate_DoesNotDependOnEarlierEstimates) {
  const std::vector<std::uint64_t> sizes = {1000, 1010, 64, 1'000'000, 50'000, 0, 1'020'000};
  Curve asked, quiet;
  for (std::uint64_t i = 0; i < 400; ++i) {
    for (const std::uint64_t bytes : sizes) {
      const Curve fresh = quiet;
      const std::int64_t answer = fresh.estimate(bytes);
      EXPECT_EQ(asked.estimate(bytes), answer) << bytes << " after " << i << " times";
      EXPECT_EQ(asked.estimate(bytes), answer) << bytes << " after " << i << " times";
    }
    const std::uint64_t noted = i < 50 ? sizes[i % 3] : 64 + i * i * i;
    const auto time = static_cast<std::int64_t>(100 + i % 7 * 1000 + noted / 2);
    asked.note(noted, time);
    quiet.note(noted, time);
  }
}

TEST(PerformanceModel, ThousandsOfSizes_AreMergedIntoFewAndStayAccurate) {
  PerformanceModel models;
  Curve& curve = models.curve("gemm", "host x1");
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const std::uint64_t bytes = i * i * 64;
    curve.note(bytes, static_cast<std::int64_t>(bytes * 3));
    curve.note(99'999, 99'999);
  }
  std::size_t sizes = 0;
  models.each([&](const auto&, const auto&, auto...) { ++sizes; });
  EXPECT_LE(sizes, Curve::kMostSizes);
  EXPECT_LT(models.text("m").size(), 2'000u);
  for (const std::uint64_t bytes : std::vector<std::uint64_t>{640, 1'000'000, 6'000'000'000}) {
    const auto wanted = static_cast<double>(bytes) * 3;
    EXPECT_NEAR(static_cast<double>(curve.estimate(bytes)), wanted, wanted / 2) << bytes;
  }
  EXPECT_NEAR(static_cast<double>(curve.estimate(99'999)), 99'999, 1'000)
      << "what is seen again and again keeps its own time";
}

TEST(PerformanceModel, Curves_AreSeparatePerKernelAndKindAndKeepTheirAddress) {
  PerformanceModel models;
  Curve& first = models.curve("gemm", "host");
  first.note(8, 100);
  for (int i = 0; i < 100; ++i) models.curve("kernel " + std::to_string(i), "host");
  EXPECT_EQ(&models.curve("gemm", "host"), &first);
  EXPECT_EQ(models.curve("gemm", "sim").estimate(8), -1);
  EXPECT_EQ(models.curve("kernel 1", "host").estimate(8), -1);
}

TEST(PerformanceModel, Speeds_CompareKindsByMeasurementsTheyShare) {
  PerformanceModel models;
  const std::string kinds[] = {"slow", "fast", "slow"};
  models.curve("gemm", "slow").note(8, 400);
  models.curve("syrk", "slow").note(8, 900);
  models.curve("gemm", "fast").note(16, 1);
  EXPECT_TRUE(models.speeds(kinds).empty());
  models.curve("gemm", "fast").note(8, 200);
  models.curve("syrk", "fast").note(8, 50);
  const std::vector<double> speeds = models.speeds(kinds);
  ASSERT_EQ(speeds.size(), 3u);
  EXPECT_DOUBLE_EQ(speeds[0], 1);
  EXPECT_DOUBLE_EQ(speeds[1], 6) << "between 2 and 18";
  EXPECT_DOUBLE_EQ(speeds[2], 1);
}

// ---- As text -----------------------------------------------------------------------------------

PerformanceModel sample() {
  PerformanceModel models;
  models.curve("syrk", "sim a device x2").note(64, 10);
  models.curve("gemm", "host x1").note(8, 100);
  models.curve("gemm", "host x1").note(8, 200);
  models.curve("gemm", "host x1").note(16, 300);
  return models;
}

TEST(PerformanceModel, TextRoundTrip_GivesTheSameModel) {
  const std::string text = sample().text("a machine");
  EXPECT_EQ(text,
            "weir performance models 1\n"
            "a machine\n"
            "gemm\thost x1\t8\t2\t150\n"
            "gemm\thost x1\t16\t1\t300\n"
            "syrk\tsim a device x2\t64\t1\t10\n");
  PerformanceModel back;
  back.read(text, "a machine", "file");
  EXPECT_EQ(back.text("a machine"), text);
  back.curve("gemm", "host x1").note(8, 450);
  EXPECT_EQ(back.curve("gemm", "host x1").estimate(8), 300) << "what was read counts as one time";
}

TEST(PerformanceModel, NamesWithTabOrNewline_AreOmittedFromTheText) {
  PerformanceModel models = sample();
  models.curve("two\nlines", "host x1").note(8, 1);
  models.curve("a\ttab", "host x1").note(8, 1);
  EXPECT_EQ(models.text("m"), sample().text("m"));
}

TEST(PerformanceModel, OwnMeasurement_TakesPrecedenceOverTimeRead) {
  PerformanceModel models;
  models.curve("gemm", "host x1").note(8, 7);
  models.read(sample().text("m"), "m", "file");
  EXPECT_EQ(models.curve("gemm", "host x1").estimate(8), 7);
  EXPECT_EQ(models.curve("gemm", "host x1").estimate(16), 300);
}

TEST(PerformanceModel, ThousandsOfLinesRead_AreMergedIntoFewSizes) {
  std::string text = "weir performance models 1\nm\n";
  for (std::uint64_t bytes = 1; bytes <= 10'000; ++bytes) {
    text += "gemm\thost x1\t" + std::to_string(bytes) + "\t1\t" + std::to_string(bytes) + "\n";
  }
  PerformanceModel models;
  models.read(text, "m", "file");
  EXPECT_LT(models.text("m").size(), 2'000u);
  EXPECT_NEAR(static_cast<double>(models.curve("gemm", "host x1").estimate(5'000)), 5'000, 2'500);
}

TEST(PerformanceModel, TextAtItsSizeLimit_KeepsKernelsUsedRecently) {
  std::string text = "weir performance models 1\nm\n";
  for (int i = 0; i < 5'000; ++i) {
    text += "kernel " + std::to_string(i) + "\thost x1\t8\t1\t100\n";
  }
  PerformanceModel models;
  models.read(text, "m", "file");
  models.curve("zgemm", "host x1").note(8, 7);
  models.curve("kernel 4999", "host x1").note(8, 100);
  const std::string kept = models.text("m");
  EXPECT_LE(kept.size(), PerformanceModel::kMostBytes);
  PerformanceModel back;
  back.read(kept, "m", "file");
  EXPECT_EQ(back.text("m"), kept);
  EXPECT_EQ(back.curve("zgemm", "host x1").estimate(8), 7);
  EXPECT_EQ(back.curve("kernel 4999", "host x1").estimate(8), 100);
  EXPECT_EQ(back.curve("kernel 0", "host x1").estimate(8), 100);
  EXPECT_EQ(back.curve("kernel 4998", "host x1").estimate(8), -1) << "was read last";
}

TEST(PerformanceModel, StoreToCache_MergesWithTimesStoredByOthers) {
  const CacheFolder folder;
  PerformanceModel first, second, both;
  first.curve("gemm", "host x1").note(8, 100);
  second.curve("gemm", "host x1").note(8, 300);
  second.curve("syrk", "host x1").note(8, 200);
  second.store_cached("m");
  first.store_cached("m");
  both.load_cached("m");
  EXPECT_EQ(both.curve("gemm", "host x1").estimate(8), 100) << "of the last";
  EXPECT_EQ(both.curve("syrk", "host x1").estimate(8), 200);
}

TEST(PerformanceModel, StoreToCache_DoesNotOverwriteWithTimesOnlyRead) {
  const CacheFolder folder;
  PerformanceModel old, first, second, both;
  old.curve("gemm", "host x1").note(8, 1000);
  old.store_cached("m");
  first.load_cached("m");
  second.curve("gemm", "host x1").note(8, 300);
  second.store_cached("m");
  first.curve("syrk", "host x1").note(8, 200);
  first.store_cached("m");
  both.load_cached("m");
  EXPECT_EQ(both.curve("gemm", "host x1").estimate(8), 300) << "what was measured later";
  EXPECT_EQ(both.curve("syrk", "host x1").estimate(8), 200);
}

std::string refusal(const std::string& text) {
  PerformanceModel models;
  const std::string message =
      thrown_by<Error>([&] { models.read(text, "here", "times"); }, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(message.empty(), models.text("here") != PerformanceModel().text("here"))
      << "nothing is added by what is refused";
  return message;
}

TEST(PerformanceModel, TextOfAnotherVersion_IsRefused) {
  const std::string message = "'times' has no performance models of this version: remove it";
  EXPECT_EQ(refusal(""), message);
  EXPECT_EQ(refusal("weir performance models 2\nhere\n"), message);
  EXPECT_EQ(refusal("#!/bin/sh\n"), message);
}

TEST(PerformanceModel, TextOfAnotherMachine_IsRefused) {
  EXPECT_EQ(refusal("weir performance models 1\nthere\nk\thost\t1\t1\t1\n"),
            "the models in 'times' are of another machine, 'there': remove the file");
}

TEST(PerformanceModel, MalformedLine_IsRefusedWithItsNumber) {
  const std::string start = "weir performance models 1\nhere\nk\thost\t1\t1\t1\n";
  EXPECT_EQ(refusal(start), "");
  for (const char* line :
       {"", "k\thost\t1\t1", "k\thost\t1\t1\t1\t1", "\thost\t1\t1\t1", "k\thost\tx\t1\t1",
        "k\thost\t1 \t1\t1", "k\thost\t-1\t1\t1", "k\thost\t1\t0\t1", "k\thost\t1\t-1\t1",
        "k\thost\t1\t1\t0", "k\thost\t1\t1\t-3", "k\thost\t1\t1\tnan", "k\thost\t1\t1\tinf",
        "k\thost\t1\t1\t1e300", "k\thost\t99999999999999999999\t1\t1"}) {
    EXPECT_EQ(refusal(start + line + "\n"), "line 4 of 'times' is not a model: remove the file")
        << line;
  }
}

}  // namespace
}  // namespace weir::rt
