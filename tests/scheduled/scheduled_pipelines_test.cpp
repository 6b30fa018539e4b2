// Random pipelines: no early end, and none missed.
#include "random_pipeline.hpp"
#include "random_trials.hpp"

namespace weir::rt::random_pipeline {
namespace {

constexpr std::uint64_t kPipelines = 2'000;

TEST(ScheduledPipelines, EqualTheirSequentialExecution) {
  schedule::run_trials("scheduled_pipelines", "pipelines", kPipelines, plan_of,
                       [](const Plan& plan) { return Trial(plan).run(); });
}

TEST(ScheduledPipelines, KeepTheOrder) {
  for (std::uint64_t seed = 1; seed <= schedule::setting("WEIR_TEST_PROGRAMS", kPipelines) / 4;
       ++seed) {
    std::string wrong;
    schedule::run(schedule::options_of(seed), [&] { wrong = OrderTrial(seed).run(); });
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::rt::random_pipeline
