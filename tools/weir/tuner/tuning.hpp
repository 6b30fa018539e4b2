// The points among which a tuner chooses, and their measurements.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::cli::tuner {

/// How a run is divided.
struct Point {
  std::size_t places = 1;   ///< of each domain
  std::size_t streams = 2;  ///< of each place
  std::size_t tiles = 0;    ///< as --tiles; 0: the application's choice
  std::string policy = {};  ///< of a task queue that gets the work, "": streams get it
  std::size_t aspect = 1;   ///< width of a tile over its height

  auto operator<=>(const Point&) const = default;
};

/// The division that `weir run` uses by default.
inline const Point kDefault{};

/// Where the time of a recorded run went, in seconds: parts that do not overlap. All are 0 where no
/// recording was read.
struct Account {
  double work_s = 0;          ///< kernels, as long as all cores of all domains would take for them
  double idle_s = 0;          ///< the rest of the time in which kernels ran: cores without one
  double exposed_s = 0;       ///< copies that no kernel hid
  double nothing_s = 0;       ///< neither kernels nor copies
  std::uint64_t kernels = 0;  ///< how many ran

  double seconds() const noexcept { return work_s + idle_s + exposed_s + nothing_s; }
};

/// The measurements of a point. Times in seconds.
struct Evaluation {
  Point point;
  std::size_t tiles = 0;  ///< that the application made
  std::vector<double> samples;
  double link_s = 0;      ///< of the busiest link
  double compute_s = 0;   ///< of all kernels, summed
  double critical_s = 0;  ///< of the longest chain of dependent actions
  Account account = {};   ///< of one of the runs

  /// Median of the samples.
  double seconds() const;
};

/// What there is to choose from.
struct Space {
  std::size_t cores = 1;        ///< of the largest domain, where threads share them: divided evenly
  std::size_t most_places = 1;  ///< that every domain has cores for
  std::size_t threads = 1;      ///< kernels that all domains together can run at once
  std::size_t most_tiles = 1;   ///< 0: the application has none to choose
  bool noisy = true;  ///< whether the same point takes another time when it is measured again

  /// Points of an exhaustive search over places and tiles.
  std::size_t size() const noexcept { return most_places * std::max<std::size_t>(1, most_tiles); }
};

}  // namespace weir::cli::tuner
