// Random shares: every item once, and no end missed.
#include "random_share.hpp"
#include "random_trials.hpp"

namespace weir::random_share {
namespace {

TEST(ScheduledShares, RandomFaults_ShareDoesAllItemsOrReportsTheFailure) {
  schedule::run_trials("scheduled_shares", "shares", 1'000, plan_of,
                       [](const Plan& plan) { return Trial(plan).run(); });
}

}  // namespace
}  // namespace weir::random_share
