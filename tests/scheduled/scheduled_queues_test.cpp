// Random programs of tasks: as one after the other, in every order of the threads.
#include "queue_trial.hpp"
#include "random_trials.hpp"

namespace weir::queue_model {
namespace {

TEST(ScheduledQueues, EqualTheirSequentialExecution) {
  const auto point = [] { schedule::point(schedule::Operation::load); };
  schedule::run_trials("scheduled_queues", "programs of tasks", 1'000, plan_of,
                       [&](const Plan& plan) { return Trial(plan, point).run(); });
}

}  // namespace
}  // namespace weir::queue_model
