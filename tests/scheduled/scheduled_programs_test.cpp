// Random programs on the whole runtime, run by the scheduler: one seed is one execution.
//
// WEIR_TEST_PROGRAMS=N   runs N programs over all platforms
// WEIR_TEST_SEED=S       starts at seed S
// WEIR_TEST_REPLAY=FILE  runs the program in a file, with the schedule the file names
// WEIR_TEST_SHRINK=0     does not shrink and keep what fails
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/threads.hpp"
#include "corpus.hpp"
#include "executor.hpp"
#include "imagined_machine.hpp"
#include "platforms.hpp"
#include "scheduler.hpp"
#include "schedules.hpp"
#include "settings.hpp"
#include "shrink.hpp"

namespace weir::model {
namespace {

constexpr std::uint64_t kPrograms = 10'000;
constexpr std::uint64_t kRepeatOneIn = 10;  ///< must do exactly the same again
constexpr double kShrinkSeconds = 60;

class ScheduledHost final : public Host {
 public:
  void run_all(const std::vector<std::function<void()>>& bodies) override {
    std::vector<rt::sys::Thread> threads;
    for (std::size_t i = 1; i < bodies.size(); ++i) {
      threads.emplace_back("program" + std::to_string(i), bodies[i]);
    }
    bodies[0]();
  }
  void relax() noexcept override { schedule::pause(); }
  void inside_kernel() noexcept override { schedule::point(schedule::Operation::load); }
};

/// The platform of a program, by the shares of all.
const Platform& platform_of(std::uint64_t seed) {
  std::uint64_t at = seed * 0x9E3779B97F4A7C15u % 1000;
  for (const Case& each : cases()) {
    if (at < each.share) return each.platform;
    at -= each.share;
  }
  return cases().back().platform;
}

std::string replay_command(std::uint64_t seed) {
  return "WEIR_TEST_SEED=" + std::to_string(seed) + " WEIR_TEST_PROGRAMS=1 scheduled_programs";
}

struct Result {
  std::string wrong;
  schedule::Summary summary;
};

Result run_once(const Program& program, const Platform& platform, schedule::Options options) {
  Result result;
  result.summary = schedule::run(options, [&] {
    ScheduledHost host;
    Executor executor(platform, host);
    result.wrong = executor.run(program);
  });
  return result;
}

/// Shrinks a plan that failed, looking for schedules that make the smaller ones fail.
std::string report(const Program& plan, const Platform& platform, const schedule::Options& first) {
  const std::string replay = "replay: " + first.replay_command + "\n";
  if (setting("WEIR_TEST_SHRINK", 1) == 0) return replay;
  std::uint64_t failing_seed = first.seed;
  const Fails fails = [&](const Program& candidate) {
    const Program program = ordered(candidate, platform);
    return schedule::fails_on_some(first, failing_seed, [&](const schedule::Options& options) {
      return run_once(program, platform, options).wrong;
    });
  };
  const Program small = shrink(plan, fails, kShrinkSeconds);
  const auto file = keep({platform.name, small, name_of(first.strategy), failing_seed});
  return replay + "shrunk: WEIR_TEST_REPLAY=" + file.string() + " scheduled_programs\n" +
         ordered(small, platform).list(platform);
}

TEST(ScheduledPrograms, EqualTheirSequentialExecution) {
  if (!setting("WEIR_TEST_REPLAY").empty()) GTEST_SKIP() << "not asked for";
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = setting("WEIR_TEST_PROGRAMS", kPrograms);
  std::uint64_t repeated = 0, points = 0, switches = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Platform& platform = platform_of(seed);
    const Program plan = plan_program(seed, platform);
    const Program program = ordered(plan, platform);
    schedule::Options options;
    options.seed = seed;
    options.strategy = schedule::strategy_of(seed);
    options.most_points = 20'000'000;
    options.replay_command = replay_command(seed);
    if (count == 1) std::fputs(program.list(platform).c_str(), stdout);
    const Result result = run_once(program, platform, options);
    points += result.summary.points;
    switches += result.summary.switches;
    if (!result.wrong.empty()) FAIL() << result.wrong << report(plan, platform, options);
    if (seed % kRepeatOneIn != 0) continue;
    ++repeated;
    ASSERT_EQ(run_once(program, platform, options).summary.hash, result.summary.hash)
        << "the same seed did something else; replay: " << options.replay_command;
  }
  std::printf("proof: %s programs, %s repeated exactly, %s points, %s switches, 0 mismatches\n",
              grouped(count).c_str(), grouped(repeated).c_str(), grouped(points).c_str(),
              grouped(switches).c_str());
}

TEST(ScheduledPrograms, RecordedSchedule_ReplaysIdentically) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Platform& platform = platform_of(seed);
    const Program program = ordered(plan_program(seed, platform), platform);
    schedule::Options options;
    options.seed = seed;
    options.strategy = schedule::strategy_of(seed);
    options.record = true;
    options.replay_command = "replay of " + replay_command(seed);
    const Result first = run_once(program, platform, options);
    options.strategy = schedule::Strategy::replay;
    options.switches = first.summary.recorded;
    ASSERT_EQ(run_once(program, platform, options).summary.hash, first.summary.hash)
        << "seed " << seed;
  }
}

void run_file(const std::filesystem::path& file) {
  const Found found = load(file);
  const Platform& platform = platform_named(found.platform);
  if (has_threads_of_its_own(platform)) return;
  const Program program = ordered(found.plan, platform);
  schedule::Options options;
  options.replay_command = "WEIR_TEST_REPLAY=" + file.string() + " scheduled_programs";
  const auto run = [&](const schedule::Options& on) {
    ASSERT_EQ(run_once(program, platform, on).wrong, "") << file << "\n" << program.list(platform);
  };
  schedule::on_each_schedule(found.strategy, found.schedule_seed, options, run);
}

TEST(ScheduledCorpus, ProgramsThatOnceFailed_EqualTheirSequentialExecution) {
  const std::string only = setting("WEIR_TEST_REPLAY");
  if (!only.empty()) {
    run_file(only);
    return;
  }
  for (const auto& file : corpus()) run_file(file);
}

}  // namespace
}  // namespace weir::model
