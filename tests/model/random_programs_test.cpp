// Any stream program equals its sequential execution, on real threads.
//
// WEIR_TEST_PROGRAMS=N   runs N programs over all platforms; a single one is listed
// WEIR_TEST_SEED=S       starts at seed S
// WEIR_TEST_PLATFORM=P   on this platform only, which then gets all N
// WEIR_TEST_REPLAY=FILE  runs the program in a file as often as asked for (100 times)
// WEIR_TEST_SHRINK=0     does not shrink and keep what fails
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include <weir/weir.hpp>

#include "corpus.hpp"
#include "executor.hpp"
#include "fleet.hpp"
#include "hang_guard.hpp"
#include "platforms.hpp"
#include "sanitizers.h"
#include "settings.hpp"
#include "shrink.hpp"

namespace weir::model {
namespace {

#if defined(WEIR_ADDRESS_SANITIZER) || defined(WEIR_THREAD_SANITIZER)
constexpr std::uint64_t kPrograms = 20'000;
#else
constexpr std::uint64_t kPrograms = 100'000;
#endif
constexpr double kShrinkSeconds = 60;
constexpr int kTries = 20;  ///< a smaller program fails when it fails once in so many runs

std::uint64_t programs_run = 0;
int mismatches = 0;

std::string replay_command(const Platform& platform, std::uint64_t seed) {
  return "WEIR_TEST_PLATFORM=" + platform.name + " WEIR_TEST_SEED=" + std::to_string(seed) +
         " WEIR_TEST_PROGRAMS=1 random_programs";
}

/// Shrinks a plan that failed, keeps it, and says how to repeat it.
std::string report(Executor& executor, const Platform& platform, const Program& plan) {
  const std::string replay = "replay: " + replay_command(platform, plan.seed) + "\n";
  if (setting("WEIR_TEST_SHRINK", 1) == 0) return replay;
  const Fails fails = [&](const Program& candidate) {
    for (int i = 0; i < kTries; ++i) {
      const HangGuard guard(replay_command(platform, plan.seed));
      if (!executor.run(ordered(candidate, platform)).empty()) return true;
    }
    return false;
  };
  const Program small = shrink(plan, fails, kShrinkSeconds);
  const auto file = keep({platform.name, small, "", 0});
  return replay + "shrunk: WEIR_TEST_REPLAY=" + file.string() + " random_programs\n" +
         ordered(small, platform).list(platform);
}

#ifdef WEIR_TEST_FAKE_CUDA
/// The kernels are code of the host: never on a real GPU.
const bool fake_driver = setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1) == 0;
#endif

/// The fabric of platforms with other ranks, which are threads of this process.
weir_fabric* fabric_of(const Platform& platform) {
  if (platform.domains.find("rank:") == std::string::npos) return nullptr;
  static const Fleet fleet(3, [](const Runtime& runtime) { Kernels(runtime.handle()); });
  return fleet.fabric();
}

/// Why there is no such platform here, "": there is.
std::string missing(const Platform& platform) {
#ifdef __SANITIZE_THREAD__
  if (platform.domains.find("opencl") != std::string::npos) {
    return "the thread sanitizer does not see the locks of the driver";
  }
#endif
  if (fabric_of(platform) != nullptr) return {};
  try {
    const Runtime runtime(platform.domains);
    return {};
  } catch (const Error& error) {
    const bool absent =
        error.status() == WEIR_STATUS_UNAVAILABLE || error.status() == WEIR_STATUS_NOT_FOUND;
    if (!absent) throw;
    return error.what();
  }
}

class RandomPrograms : public testing::TestWithParam<Case> {};

TEST_P(RandomPrograms, EqualTheirSequentialExecution) {
  const std::string only = setting("WEIR_TEST_PLATFORM");
  const std::string& name = GetParam().platform.name;
  if (!setting("WEIR_TEST_REPLAY").empty() || (!only.empty() && only != name)) {
    GTEST_SKIP() << "not asked for";
  }
  const std::string reason = missing(GetParam().platform);
  if (!reason.empty()) GTEST_SKIP() << reason;
  if (only.empty() && GetParam().share == 0) GTEST_SKIP() << "runs when it is asked for by name";
  const Platform platform = as_found(GetParam().platform);
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  std::uint64_t count = setting("WEIR_TEST_PROGRAMS", kPrograms);
  if (only.empty()) count = count * GetParam().share / 1000;
  Host host;
  Executor executor(platform, host, fabric_of(platform));
  for (std::uint64_t seed = first; seed < first + count; ++seed, ++programs_run) {
    const Program plan = plan_program(seed, platform);
    if (count == 1) std::fputs(ordered(plan, platform).list(platform).c_str(), stdout);
    std::string wrong;
    {
      const HangGuard guard(replay_command(platform, seed));
      wrong = executor.run(ordered(plan, platform));
    }
    if (wrong.empty()) continue;
    ++mismatches;
    FAIL() << wrong << report(executor, platform, plan);
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, RandomPrograms, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.platform.name; });
INSTANTIATE_TEST_SUITE_P(Devices, RandomPrograms, testing::ValuesIn(device_cases()),
                         [](const auto& info) { return info.param.platform.name; });

void run_file(const std::filesystem::path& file, std::uint64_t times) {
  const Found found = load(file);
  if (!missing(platform_named(found.platform)).empty()) return;
  const Platform platform = as_found(platform_named(found.platform));
  const Program program = ordered(found.plan, platform);
  Host host;
  Executor executor(platform, host, fabric_of(platform));
  for (std::uint64_t i = 0; i < times; ++i, ++programs_run) {
    const HangGuard guard("WEIR_TEST_REPLAY=" + file.string() + " random_programs");
    const std::string wrong = executor.run(program);
    ASSERT_EQ(wrong, "") << file << "\n" << program.list(platform);
  }
}

TEST(Corpus, ProgramsThatOnceFailed_EqualTheirSequentialExecution) {
  const std::string only = setting("WEIR_TEST_REPLAY");
  const std::uint64_t times = setting("WEIR_TEST_PROGRAMS", 0);
  if (!only.empty()) {
    run_file(only, times != 0 ? times : 100);
    return;
  }
  for (const auto& file : corpus()) run_file(file, 100);
}

TEST(Corpus, SavedProgram_IsLoadedUnchanged) {
  for (const Case& each : cases()) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const Program plan = plan_program(seed, each.platform);
      const std::filesystem::path file =
          testing::TempDir() + "weir_program." + std::to_string(getpid()) + ".json";
      save({each.platform.name, plan, "random", seed}, file);
      const Found back = load(file);
      EXPECT_EQ(ordered(back.plan, each.platform).list(each.platform),
                ordered(plan, each.platform).list(each.platform));
      EXPECT_EQ(back.schedule_seed, seed);
      std::filesystem::remove(file);
    }
  }
}

/// Seeds 1 to 5 agree with an oracle that expects aliases where there are none: the runtime is
/// asked.
TEST(Platforms, AliasFlagsUnlikeThoseOfTheRuntime_AreRefused) {
  Platform platform{"unlike", "host:cores=1,sim:cores=1", {0, 1}, {1, 1}, {true, true}};
  Host host;
  EXPECT_THROW(Executor(platform, host), std::runtime_error);
  platform.aliases = {};
  EXPECT_EQ(as_found(platform).aliases, (std::vector<bool>{true, false}));
}

/// A plan "fails" while it holds a failing kernel and a later transfer: that must be all that
/// stays.
TEST(Shrink, FailingProgram_ShrinksToTheMinimalFailingProgram) {
  const Platform& platform = platform_named("host_and_two_sims");
  const Fails fails = [](const Program& plan) {
    bool failing = false;
    for (const Step& step : plan.steps) {
      failing |= step.fails;
      if (failing && step.kind == StepKind::transfer) return true;
    }
    return false;
  };
  int tried = 0;
  for (std::uint64_t seed = 1; tried < 20; ++seed) {
    const Program plan = plan_program(seed, platform);
    if (!fails(plan)) continue;
    ++tried;
    const Program small = shrink(plan, fails, 10);
    EXPECT_EQ(small.steps.size(), 2u) << small.list(platform);
    EXPECT_EQ(small.threads, 1u);
  }
}

class Amount : public testing::Environment {
  void TearDown() override {
    std::printf("proof: %s programs, %d mismatches, 0 hangs\n", grouped(programs_run).c_str(),
                mismatches);
  }
};
const testing::Environment* const amount = testing::AddGlobalTestEnvironment(new Amount);

}  // namespace
}  // namespace weir::model
