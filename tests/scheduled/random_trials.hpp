// Random plans that check themselves, in orders of their threads that seeds decide.
//
// WEIR_TEST_PROGRAMS=N   runs N of them
// WEIR_TEST_SEED=S       starts at seed S
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "imagined_machine.hpp"
#include "scheduler.hpp"
#include "schedules.hpp"

namespace weir::schedule {

inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

inline Options options_of(std::uint64_t seed) {
  Options options;
  options.seed = seed;
  options.strategy = strategy_of(seed);
  options.most_points = 5'000'000;
  return options;
}

inline std::string replay_command(const char* program, std::uint64_t seed) {
  return "WEIR_TEST_PROGRAMS=1 WEIR_TEST_SEED=" + std::to_string(seed) + " " + program;
}

/// Says nothing more of a plan that failed.
struct NoReport {
  template <class Plan>
  std::string operator()(const Plan&, const Options&) const {
    return "";
  }
};

/// Runs `program`, the name of the test, for each seed: trial(plan) returns what went wrong, ""
/// when nothing did; report(plan, options) what there is to say of it. One in 50 runs twice and
/// must run the same way. `what` is what is counted.
template <class PlanOf, class Trial, class Report = NoReport>
void run_trials(const char* program, const char* what, std::uint64_t usual, PlanOf&& plan_of,
                Trial&& trial, const Report& report = {}) {
  constexpr std::uint64_t kRepeatOneIn = 50;
  const std::uint64_t first = setting("WEIR_TEST_SEED", 1);
  const std::uint64_t count = setting("WEIR_TEST_PROGRAMS", usual);
  std::uint64_t points = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto plan = plan_of(seed);
    if (count == 1) std::puts(plan.describe().c_str());
    Options options = options_of(seed);
    options.replay_command = replay_command(program, seed);
    std::string wrong;
    const auto run_once = [&] { return run(options, [&] { wrong = trial(plan); }); };
    const Summary summary = run_once();
    if (!wrong.empty()) {
      FAIL() << wrong << "\nreplay: " << options.replay_command << "\n" << report(plan, options);
    }
    points += summary.points;
    if (seed % kRepeatOneIn != 0) continue;
    ASSERT_EQ(run_once().hash, summary.hash)
        << "the same seed did something else; replay: " << options.replay_command;
  }
  std::printf("proof: %llu %s, %llu points\n", static_cast<unsigned long long>(count), what,
              static_cast<unsigned long long>(points));
}

}  // namespace weir::schedule
