// What tuners have found out on this machine, kept for later.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tuner/tuning.hpp"

namespace weir::cli::tuner {

/// Which runs a result is for: the same version, machine and domains, and the same problem.
struct Problem {
  std::string machine;  ///< as it describes itself
  std::string domains;  ///< as they were asked for
  std::string application;
  std::string options;  ///< that matter
  std::size_t n = 0;    ///< order, 0: the application's own, or that of the input

  /// What weir_wisdom_find() knows it by, with n.
  std::string name() const;
};

/// What was measured of one problem: a file in "weir/tuned" of XDG_CACHE_HOME or ~/.cache. It saves
/// work when it is there, and is never an error. What was chosen is wisdom of the library.
class Samples {
 public:
  explicit Samples(Problem problem);

  const Problem& problem() const noexcept { return problem_; }

  /// Where it is, "" when there is no home for it.
  const std::string& path() const noexcept { return path_; }

  /// What was measured; nothing when the file is not there, or is not of this problem.
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
