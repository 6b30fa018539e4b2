// Identifies runs that share the results of a tuner.
#pragma once

#include <string>

#include "application_run.hpp"
#include "tuner/samples.hpp"

namespace CLI {
class App;
}

namespace weir::cli {

/// Returns the domains that options ask for, or else the environment.
std::string domains_of(const RunOptions& options);

/// Returns the problem that the options of a command name: all options except those that divide or
/// observe a run, with the order of the problem as a class.
tuner::Problem problem_of(const CLI::App& app, const std::string& application,
                          const RunOptions& options);

/// Returns these options with the order and the domains, as words for a shell, a blank before each.
std::string problem_words(const CLI::App& app);

/// Divides a run as a point says, which has no tiles where the application chooses them.
void divide(RunOptions& options, const tuner::Point& point);

}  // namespace weir::cli
