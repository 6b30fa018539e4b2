// What `weir run` says about a run, from facts made by hand.
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "run_report.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kOperations = 1e9;

/// A run of one second, so that its rate is 1 GFLOP/s.
RunReport example() {
  RunReport report;
  report.application = "cholesky";
  report.precision = "double";
  report.n = 64;
  report.tile = 16;
  report.operations = kOperations;
  report.samples = {1};
  report.description =
      R"({"domains": [{"name": "host", "cores": 2}], "machine": {}, "blas": {"name": "any"}})";
  return report;
}

TEST(GemmPeak, IsTheLargerMeasurementAroundTheRuns) {
  RunReport report = example();
  report.gemm_peaks = {1.25e9, 2e9};
  EXPECT_NE(report.text().find("50 % of this machine's gemm peak (2.0 GFLOP/s)"), std::string::npos)
      << report.text();
  const Json peak = Json::parse(report.json()).at("gemm_peak");
  EXPECT_EQ(peak.at("share"), 0.5);
  EXPECT_EQ(peak.at("value"), 2.0);
  EXPECT_EQ(peak.at("samples"), (Json{1.25, 2.0}));
  EXPECT_FALSE(peak.contains("problem"));
}

TEST(GemmPeak, BelowTheRateOfTheRun_IsSaidToBeUnknown) {
  RunReport report = example();
  report.gemm_peaks = {0.5e9, 0.7e9};
  const std::string text = report.text();
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
  EXPECT_NE(text.find("gemm peak of this machine is not known: it was measured as 0.5 GFLOP/s and "
                      "0.7 GFLOP/s"),
            std::string::npos)
      << text;
  const Json peak = Json::parse(report.json()).at("gemm_peak");
  EXPECT_TRUE(peak.at("share").is_null());
  EXPECT_NE(peak.at("problem").get<std::string>().find("run it again"), std::string::npos);
}

TEST(GemmPeak, ShareNeverExceedsOne) {
  for (const double first : {0.1e9, 0.999e9, 1e9, 1.001e9, 3e9}) {
    for (const double second : {0.2e9, 1e9, 2e9}) {
      RunReport report = example();
      report.gemm_peaks = {first, second};
      const Json share = Json::parse(report.json()).at("gemm_peak").at("share");
      EXPECT_TRUE(share.is_null() || share.get<double>() <= 1) << first << ' ' << second;
    }
  }
}

TEST(GemmPeak, NotMeasured_IsNotMentioned) {
  const RunReport report = example();
  EXPECT_EQ(report.text().find("peak"), std::string::npos);
  EXPECT_FALSE(Json::parse(report.json()).contains("gemm_peak"));
}

TEST(Sharing, RunWithoutStreamsOrPlaces_OmitsThem) {
  RunReport report = example();
  EXPECT_NE(report.text().find("host: cores 2, places 1, streams 2 each\n"), std::string::npos);
  report.uses_streams = false;
  EXPECT_NE(report.text().find("host: cores 2, places 1\n"), std::string::npos);
  report.uses_places = false;
  EXPECT_NE(report.text().find("host: cores 2\n"), std::string::npos);
  const Json json = Json::parse(report.json());
  EXPECT_TRUE(json.at("streams").is_null());
  EXPECT_TRUE(json.at("places").is_null());
}

TEST(Recording, SeveralRuns_RecordingIsNamedAsOfTheLastRun) {
  RunReport report = example();
  report.trace.ideal_s = 1;
  EXPECT_EQ(report.text().find("the last run"), std::string::npos);
  report.samples = {3, 1, 2};
  EXPECT_NE(report.text().find("(the last run, 2.00 s)"), std::string::npos) << report.text();
  const Json seconds = Json::parse(report.json()).at("seconds");
  EXPECT_EQ(seconds.at("recorded"), 2.0);
  EXPECT_EQ(seconds.at("median"), 2.0);
}

TEST(Findings, SeveralFindings_TextShowsTheFirstAndJsonListsAll) {
  RunReport report = example();
  report.analysis.findings = {{report::Judgement::bad, "the first"},
                              {report::Judgement::good, "b"}};
  EXPECT_NE(report.text().find("look at  the first\n"), std::string::npos) << report.text();
  const Json findings = Json::parse(report.json()).at("findings");
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].at("judgement"), "bad");
}

}  // namespace
}  // namespace weir::cli
