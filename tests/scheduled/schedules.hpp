// Schedules on which programs that failed are tried.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler.hpp"

namespace weir::schedule {

inline constexpr std::uint64_t kSchedulesTried = 100;

inline std::string name_of(Strategy strategy) {
  return strategy == Strategy::random ? "random" : "priorities";
}
inline Strategy strategy_of(std::uint64_t seed) {
  return seed % 2 == 0 ? Strategy::random : Strategy::priorities;
}

/// Returns whether wrong(options) says something on one of many schedules, first on that of `seed`,
/// which becomes that of the one it failed on.
template <class Wrong>
bool fails_on_some(const Options& first, std::uint64_t& seed, Wrong&& wrong) {
  for (std::uint64_t i = 0; i <= kSchedulesTried; ++i) {
    Options options = first;
    options.seed = i == 0 ? seed : i;
    if (wrong(options).empty()) continue;
    seed = options.seed;
    return true;
  }
  return false;
}

/// Calls run(options) for each schedule on which a program from a file is tried, first the one it
/// failed on, of which the file names strategy and seed.
template <class Run>
void on_each_schedule(const std::string& strategy, std::uint64_t seed, Options options, Run&& run) {
  for (std::uint64_t i = 0; i <= kSchedulesTried; ++i) {
    options.seed = i == 0 ? seed : i;
    options.strategy = strategy_of(i);
    if (i == 0 && !strategy.empty()) {
      options.strategy = strategy == "random" ? Strategy::random : Strategy::priorities;
    }
    run(options);
  }
}

}  // namespace weir::schedule
