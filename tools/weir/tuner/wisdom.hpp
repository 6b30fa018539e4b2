// What tuners have found out on this machine, kept for later.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tuner/tuning.hpp"

namespace weir::cli::tuner {

/// Which runs a result is for: the same version, machine and domains, and the same problem but for
/// its exact size.
struct Problem {
  std::string machine;  ///< as it describes itself
  std::string domains;  ///< as they were asked for
  std::string application;
  std::string options;  ///< that matter, with the order of the problem as a power of 2
};

/// The nearest power of 2, for problems that are tuned alike.
std::size_t size_class(std::size_t n);

/// A file of one problem, in "weir/tuned" of XDG_CACHE_HOME or ~/.cache. It saves work when it is
/// there, and is never an error.
class Wisdom {
 public:
  explicit Wisdom(Problem problem);

  /// Where it is, "" when there is no home for it.
  const std::string& path() const noexcept { return path_; }

  /// What was measured; nothing when the file is not there, or is not of this problem.
  std::vector<Evaluation> evaluations() const;
  /// What was chosen; the default when nothing was.
  Point chosen() const;
  bool exists() const { return !read().is_null(); }
  /// Replaces the file, if that is possible.
  void keep(const std::vector<Evaluation>& evaluations, const Point& chosen) const;

 private:
  nlohmann::ordered_json read() const;
  nlohmann::ordered_json head() const;

  const Problem problem_;
  std::string path_;
};

nlohmann::ordered_json as_json(const Evaluation& evaluation);

}  // namespace weir::cli::tuner
