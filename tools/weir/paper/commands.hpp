// Executes command lines of the tool, in this process or in others.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace weir::cli::paper {

/// Runs what `weir run WORDS` runs; returns {"seconds", "gflops"}: the median, and the operations
/// of the application over it. Throws weir::Error, or Interrupted.
nlohmann::ordered_json run_words(const std::string& words);

/// Whether WORDS begin with an experiment that bench_words() can run.
bool is_experiment(const std::string& words);

/// Measures what `weir bench WORDS` measures on its first domain; returns the results.
nlohmann::ordered_json bench_words(const std::string& words);

/// Runs `weir WORDS --json` in a process of its own and returns what it prints. `launcher`: the
/// command that starts ranks, such as "mpirun -n 2", in place of --ranks. Throws weir::Error, or
/// Interrupted.
nlohmann::ordered_json report_of(const std::string& words, const std::string& launcher);

/// Returns the command line of report_of() for a shell.
std::string command_of(const std::string& words, const std::string& launcher);

}  // namespace weir::cli::paper
