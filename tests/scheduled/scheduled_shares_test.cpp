// Random shares in orders of their threads that seeds decide: every item once, and no end missed.
//
// WEIR_TEST_PROGRAMS=N   runs N shares
// WEIR_TEST_SEED=S       starts at seed S
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "random_share.hpp"
#include "scheduler.hpp"

namespace weir::random_share {
namespace {

constexpr std::uint64_t kShares = 1'000;
constexpr std::uint64_t kRepeatOneIn = 50;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

schedule::Summary run_once(const Plan& plan, std::string& wrong) {
  schedule::Options options;
  options.seed = plan.seed;
  options.strategy =
      plan.seed % 2 == 0 ? schedule::Strategy::random : schedule::Strategy::priorities;
  options.most_points = 5'000'000;
  options.replay_command =
      "WEIR_TEST_PROGRAMS=1 WEIR_TEST_SEED=" + std::to_string(plan.seed) + " scheduled_shares";
  return schedule::run(options, [&] {
    wrong = Trial(plan).run();
    if (!wrong.empty()) wrong += "replay: " + options.replay_command;
  });
}

TEST(ScheduledShares, DoEveryItemOnce) {
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = setting("WEIR_TEST_PROGRAMS", kShares);
  std::uint64_t points = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Plan plan = plan_of(seed);
    if (count == 1) std::puts(plan.describe().c_str());
    std::string wrong;
    const schedule::Summary summary = run_once(plan, wrong);
    ASSERT_EQ(wrong, "");
    points += summary.points;
    if (seed % kRepeatOneIn != 0) continue;
    ASSERT_EQ(run_once(plan, wrong).hash, summary.hash) << "seed " << seed;
  }
  std::printf("proof: %llu shares, %llu points\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(points));
}

}  // namespace
}  // namespace weir::random_share
