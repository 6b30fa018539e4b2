// Random programs of tasks: as one after the other, in every order of the threads.
//
// WEIR_TEST_REPLAY=FILE  runs the program in a file, with the schedule the file names
// WEIR_TEST_SHRINK=0     does not shrink and keep what fails
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "queue_corpus.hpp"
#include "queue_shrink.hpp"
#include "queue_trial.hpp"
#include "random_trials.hpp"
#include "schedules.hpp"
#include "settings.hpp"

namespace weir::queue_model {
namespace {

constexpr double kShrinkSeconds = 60;

std::string trial(const Plan& plan) {
  Surroundings here;
  here.inside_kernel = [] { schedule::point(schedule::Operation::load); };
  here.both = [](const Surroundings::Work& one, const Surroundings::Work& other) {
    rt::sys::Thread thread("producer", other);
    one();
  };
  return Trial(plan, here).run();
}

std::string run_once(const Plan& plan, const schedule::Options& options) {
  std::string wrong;
  schedule::run(options, [&] { wrong = trial(plan); });
  return wrong;
}

/// Shrinks a plan that failed, looking for schedules that make the smaller ones fail, and keeps it.
std::string report(const Plan& plan, const schedule::Options& first) {
  if (model::setting("WEIR_TEST_SHRINK", 1) == 0) return "";
  std::uint64_t failing_seed = first.seed;
  const Fails fails = [&](const Plan& candidate) {
    return schedule::fails_on_some(first, failing_seed, [&](const schedule::Options& options) {
      return run_once(candidate, options);
    });
  };
  const Plan small = shrink(plan, fails, kShrinkSeconds);
  const auto file = keep({small, schedule::name_of(first.strategy), failing_seed});
  return "shrunk: WEIR_TEST_REPLAY=" + file.string() + " scheduled_queues\n" + small.describe();
}

TEST(ScheduledQueues, EqualTheirSequentialExecution) {
  if (!model::setting("WEIR_TEST_REPLAY").empty()) GTEST_SKIP() << "not asked for";
  schedule::run_trials("scheduled_queues", "programs of tasks", 1'000, plan_of, trial, report);
}

void run_file(const std::filesystem::path& file) {
  const Found found = load(file);
  schedule::Options options;
  options.replay_command = "WEIR_TEST_REPLAY=" + file.string() + " scheduled_queues";
  schedule::on_each_schedule(
      found.strategy, found.schedule_seed, options,
      [&](const schedule::Options& on) { ASSERT_EQ(run_once(found.plan, on), "") << file; });
}

TEST(ScheduledQueues, ProgramsThatOnceFailed_EqualTheirSequentialExecution) {
  const std::string only = model::setting("WEIR_TEST_REPLAY");
  if (!only.empty()) {
    run_file(only);
    return;
  }
  for (const auto& file : corpus()) run_file(file);
}

}  // namespace
}  // namespace weir::queue_model
