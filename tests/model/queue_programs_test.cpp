// Random programs of tasks against their sequential execution.
//
//   WEIR_TEST_PROGRAMS, WEIR_TEST_SEED, WEIR_TEST_REPLAY, WEIR_TEST_SHRINK: as for random_programs
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "../support/sanitizers.h"
#include "hang_guard.hpp"
#include "queue_corpus.hpp"
#include "queue_shrink.hpp"
#include "queue_trial.hpp"
#include "settings.hpp"

namespace weir::queue_model {
namespace {

using model::setting;

#ifdef WEIR_THREAD_SANITIZER
constexpr std::uint64_t kPrograms = 1000;
#else
constexpr std::uint64_t kPrograms = 3000;
#endif
constexpr double kShrinkSeconds = 60;
constexpr int kTries = 20;  ///< a smaller program fails when it fails once in so many runs

std::string replay_command(std::uint64_t seed) {
  return "WEIR_TEST_SEED=" + std::to_string(seed) + " WEIR_TEST_PROGRAMS=1 queue_programs";
}
std::string replay_command(const std::filesystem::path& file) {
  return "WEIR_TEST_REPLAY=" + file.string() + " queue_programs";
}

std::string run(const Plan& plan, const std::string& replay) {
  const model::HangGuard guard(replay);
  return Trial(plan).run();
}

/// Shrinks a plan that failed, keeps it, and says how to repeat it.
std::string report(const Plan& plan) {
  const std::string replay = replay_command(plan.seed);
  const std::string said = "replay: " + replay + "\n";
  if (setting("WEIR_TEST_SHRINK", 1) == 0) return said;
  const Fails fails = [&](const Plan& candidate) {
    for (int i = 0; i < kTries; ++i) {
      if (!run(candidate, replay).empty()) return true;
    }
    return false;
  };
  const Plan small = shrink(plan, fails, kShrinkSeconds);
  return said + "shrunk: " + replay_command(keep({small, "", 0})) + "\n" + small.describe();
}

TEST(QueuePrograms, EqualTheirSequentialExecution) {
  if (!setting("WEIR_TEST_REPLAY").empty()) GTEST_SKIP() << "not asked for";
  const std::uint64_t programs = setting("WEIR_TEST_PROGRAMS", kPrograms);
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    const Plan plan = plan_of(seed);
    const std::string wrong = run(plan, replay_command(seed));
    if (!wrong.empty()) FAIL() << wrong << report(plan);
  }
  std::cout << "proof: " << model::grouped(programs) << " programs\n";
}

void run_file(const std::filesystem::path& file, std::uint64_t times) {
  const Plan plan = load(file).plan;
  for (std::uint64_t i = 0; i < times; ++i) {
    ASSERT_EQ(run(plan, replay_command(file)), "") << file;
  }
}

TEST(QueueCorpus, ProgramsThatOnceFailed_EqualTheirSequentialExecution) {
  const std::string only = setting("WEIR_TEST_REPLAY");
  const std::uint64_t times = setting("WEIR_TEST_PROGRAMS", 0);
  if (!only.empty()) {
    run_file(only, times != 0 ? times : 100);
    return;
  }
  for (const auto& file : corpus()) run_file(file, 100);
}

/// A file that is removed with the test.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_ =
      testing::TempDir() + "weir_queue_program." + std::to_string(getpid()) + ".json";
};

TEST(QueueCorpus, SavedProgram_IsLoadedUnchanged) {
  const File file;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Plan plan = plan_of(seed);
    save({plan, "random", seed}, file.path());
    const Found back = load(file.path());
    EXPECT_EQ(back.plan.describe(), plan.describe());
    EXPECT_EQ(back.plan.buffers, plan.buffers);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      EXPECT_EQ(back.plan.steps[i].task.seed, plan.steps[i].task.seed);
    }
    EXPECT_EQ(back.strategy, "random");
    EXPECT_EQ(back.schedule_seed, seed);
  }
}

/// A plan "fails" while a task that throws comes before a cancel: that must be all that stays.
TEST(QueueShrink, FailingProgram_ShrinksToTheMinimalFailingProgram) {
  const Fails fails = [](const Plan& plan) {
    bool throws = false;
    for (const Step& step : plan.steps) {
      throws |= step.task.throws;
      if (throws && step.kind == Step::Kind::cancel) return true;
    }
    return false;
  };
  int tried = 0;
  for (std::uint64_t seed = 1; tried < 20; ++seed) {
    const Plan plan = plan_of(seed);
    if (!fails(plan)) continue;
    ++tried;
    const Plan small = shrink(plan, fails, 10);
    ASSERT_EQ(small.steps.size(), 3u) << small.describe();
    EXPECT_EQ(small.steps[0].task.accesses.size(), 1u) << small.describe();
    EXPECT_EQ(small.parts.size(), 1u) << small.describe();
    EXPECT_EQ(small.steps[2].kind, Step::Kind::synchronize);
  }
}

/// A defect that every task shows: its kernel throws, which is not in the plan.
TEST(QueueShrink, ShrunkAndSavedProgram_FailsOnlyWithTheDefect) {
  const auto defect = [] { throw std::runtime_error("a defect"); };
  const Fails fails = [&](const Plan& plan) {
    const model::HangGuard guard(replay_command(plan.seed));
    return !Trial(plan, {.inside_kernel = defect}).run().empty();
  };
  const File file;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Plan plan = plan_of(seed);
    ASSERT_TRUE(fails(plan)) << plan.describe();
    const Plan small = shrink(plan, fails, 60);
    EXPECT_EQ(small.steps.size(), 2u) << small.describe();
    save({small, "", 0}, file.path());
    const Plan back = load(file.path()).plan;
    EXPECT_EQ(back.describe(), small.describe());
    EXPECT_TRUE(fails(back));
    EXPECT_EQ(run(back, replay_command(seed)), "");
  }
}

}  // namespace
}  // namespace weir::queue_model
