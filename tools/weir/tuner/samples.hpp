// Stored measurements of tuners on this machine.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tuner/tuning.hpp"

namespace weir::cli::tuner {

/// Identifies the runs that a result is valid for: the same version, machine, domains and problem.
struct Problem {
  std::string machine;  ///< as it describes itself
  std::string domains;  ///< as they were asked for
  std::string application;
  std::string options;  ///< that matter
  std::size_t n = 0;    ///< order, 0: the application's own, or that of the input

  /// Returns the name for weir_wisdom_find(), used together with n.
  std::string name() const;
};

/// The measurements of one problem: a file in "weir/tuned" of XDG_CACHE_HOME or ~/.cache. Without
/// the file the tuner measures again; a missing or damaged file is not an error. The choice itself
/// is stored as wisdom of the library.
class Samples {
 public:
  explicit Samples(Problem problem);

  const Problem& problem() const noexcept { return problem_; }

  /// Returns the path of the file, "" without a cache folder.
  const std::string& path() const noexcept { return path_; }

  /// Returns the measurements; empty when the file does not exist, or belongs to another problem.
  std::vector<Evaluation> evaluations() const;
  /// Replaces the file, if that is possible.
  void keep(const std::vector<Evaluation>& evaluations) const;

 private:
  nlohmann::ordered_json read() const;
  nlohmann::ordered_json head() const;

  const Problem problem_;
  std::string path_;
};

nlohmann::ordered_json as_json(const Evaluation& evaluation);

}  // namespace weir::cli::tuner
