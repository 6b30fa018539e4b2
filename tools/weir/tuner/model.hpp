// Predicts how long a run takes from those that were measured.
#pragma once

#include <functional>
#include <vector>

#include "tuner/tuning.hpp"

namespace weir::cli::tuner {

/// An analytical model of overlap, after those for streams of Gomez-Luna et al. and van Werkhoven
/// et al.: the larger of transfers and kernels, plus the part that cannot overlap, the chain of
/// dependent actions:
///
///   max(link, compute / threads) + (1 - 1 / threads) critical
///
/// The three times follow from the number of tiles, by power laws between measured numbers. What
/// the formula does not know, as how even the work of places is, is a factor that near measurements
/// give, weighted by their distance.
class Model {
 public:
  Model(const std::vector<Evaluation>& evaluations, std::size_t threads);

  /// Returns seconds. There must be an evaluation.
  double predict(const Point& point) const;

 private:
  double at(double tiles, double Evaluation::*time) const;
  double formula(double tiles) const;

  const std::vector<Evaluation>& evaluations_;
  std::vector<const Evaluation*> by_tiles_;  ///< one for each number of tiles
  const double threads_;
};

}  // namespace weir::cli::tuner
