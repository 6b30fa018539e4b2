// Searches for the fastest point of a run, independently of applications and devices.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/tuning.hpp"

namespace weir::cli::tuner {

/// Provides measurements, and limits their number.
struct Source {
  /// Measures a point: returns one more sample, or nothing when a run cannot be divided so.
  std::function<std::optional<Evaluation>(const Point&)> measure;
  /// Whether there is time for another measurement.
  std::function<bool()> may_go_on;
  /// Policies of task queues that can get the work.
  std::vector<std::string> policies = {};
  /// Whether the streams of a place change a run.
  bool streams = true;
  /// Whether tiles can be wider than high.
  bool shapes = false;
};

/// Collects evaluations, those of earlier searches first.
class Search {
 public:
  Search(const Space& space, std::vector<Evaluation> known, Source source)
      : space_(space), evaluations_(std::move(known)), source_(std::move(source)) {}

  /// Chooses among the points that the heuristics of Fang et al. leave (section 6.3.2: places that
  /// divide the cores, tiles that are a multiple of the places), in the order in which a model
  /// expects most of them; looks around the best; measures the best ones again, ever fewer of them
  /// ever more often (successive halving), when times are noisy. At most `most` new points.
  /// The default must have been measured.
  void run(std::size_t most);
  /// Measures all numbers of places and tiles.
  void run_exhaustively();

  const std::vector<Evaluation>& evaluations() const noexcept { return evaluations_; }
  /// The best point; the default when nothing is clearly better.
  const Evaluation& best() const;
  const Evaluation* find(const Point& point) const;

  /// Numbers of places that the heuristics leave.
  std::vector<std::size_t> places() const;
  /// Numbers of tiles that they leave for a number of places.
  std::vector<std::size_t> tiles(std::size_t places) const;

 private:
  bool has_budget() const { return measured_ < most_ && source_.may_go_on(); }
  bool improves(const Point& point);
  bool sample(const Point& point);
  void probe();
  void follow_model();
  void try_neighbours();
  void try_streams();
  void try_shapes();
  void try_policies();
  void halve();
  std::vector<Point> candidates() const;
  std::vector<Point> ranked() const;

  const Space space_;
  std::vector<Evaluation> evaluations_;
  std::vector<Point> impossible_;
  const Source source_;
  std::size_t most_ = 0, measured_ = 0;
};

}  // namespace weir::cli::tuner
