#include "share/share_outcome.hpp"

#include <string>

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

/// Returns what the log says at the end of a share.
std::string report_of(ShareOutcome& outcome) {
  testing::internal::CaptureStderr();
  outcome.collect_unreported().report("share", "work");
  return testing::internal::GetCapturedStderr();
}

TEST(ShareOutcome, RankLeavesAfterSuccess_IsNoFailure) {
  const std::string name = "work";
  ShareOutcome outcome(name);
  outcome.succeed();
  outcome.fail({WEIR_STATUS_NETWORK_ERROR, "rank 0 has left the fabric"});
  EXPECT_FALSE(outcome.has_failed());
  EXPECT_EQ(outcome.take_result().status, WEIR_STATUS_OK);
  EXPECT_EQ(report_of(outcome), "");
}

TEST(ShareOutcome, FailureBeforeSuccess_IsReportedAtTheEnd) {
  const std::string name = "work";
  ShareOutcome outcome(name);
  outcome.fail({WEIR_STATUS_KERNEL_ERROR, "no luck"});
  outcome.succeed();
  EXPECT_EQ(outcome.take_result().status, WEIR_STATUS_OK);
  EXPECT_NE(report_of(outcome).find("no luck"), std::string::npos);
}

TEST(ShareOutcome, FinalFailure_IsTheResult) {
  const std::string name = "work";
  ShareOutcome outcome(name);
  outcome.fail({WEIR_STATUS_KERNEL_ERROR, "first"});
  outcome.fail(WEIR_STATUS_CANCELLED, outcome.make_failure(WEIR_STATUS_CANCELLED, "final"), true);
  EXPECT_EQ(outcome.take_result().status, WEIR_STATUS_CANCELLED);
}

}  // namespace
}  // namespace weir::rt
