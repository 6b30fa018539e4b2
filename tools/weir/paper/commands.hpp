// Executes command lines of the tool inside this process.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace weir::cli::paper {

/// Runs what `weir run WORDS` runs; returns {"seconds", "gflops"}: the median, and the operations
/// of the application over it. Throws weir::Error, or Interrupted.
nlohmann::ordered_json run_words(const std::string& words);

/// Measures what `weir bench WORDS` measures on its first domain; returns the results.
nlohmann::ordered_json bench_words(const std::string& words);

}  // namespace weir::cli::paper
