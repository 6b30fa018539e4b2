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

/// A source that says at once that its epoch and itself are over, and a stage with last words.
Plan source_of_one_epoch(std::uint64_t seed) {
  Plan plan;
  plan.seed = seed;
  plan.groups = {3};
  plan.batch = plan.epochs = plan.items_of_epoch = 1;
  StagePlan stage;
  stage.capacity = 2;
  plan.stages.assign(2, stage);
  plan.stages[0].outputs = {1};
  plan.stages[0].ordered = plan.stages[0].speaks_at_end = true;
  plan.sources.push_back({{0}, 2});
  return plan;
}

TEST(ScheduledPipelines, ItemsPutAtTheEndOfAStage_PrecedeTheEndOfTheLastEpoch) {
  schedule::run_trials("scheduled_pipelines", "sources", kPipelines, source_of_one_epoch,
                       [](const Plan& plan) { return Trial(plan).run(); });
}

TEST(ScheduledPipelines, OrderedStage_KeepsTheOrderOfItems) {
  const std::uint64_t first = schedule::setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = schedule::setting("WEIR_TEST_PROGRAMS", kPipelines);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    schedule::Options options = schedule::options_of(seed);
    options.replay_command = schedule::replay_command("scheduled_pipelines", seed);
    std::string wrong;
    schedule::run(options, [&] { wrong = OrderTrial(seed).run(); });
    ASSERT_EQ(wrong, "") << "replay: " << options.replay_command;
  }
}

}  // namespace
}  // namespace weir::rt::random_pipeline
