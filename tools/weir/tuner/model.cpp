#include "tuner/model.hpp"

#include <algorithm>
#include <cmath>

namespace weir::cli::tuner {

namespace {

constexpr double kSteepest = 3;  ///< of power laws beyond what was measured

double tiles_of(const Evaluation& evaluation) {
  return static_cast<double>(std::max<std::size_t>(1, evaluation.tiles));
}

double log_ratio(std::size_t a, std::size_t b) {
  return std::log(static_cast<double>(a) / static_cast<double>(b));
}

}  // namespace

Model::Model(const std::vector<Evaluation>& evaluations, std::size_t threads)
    : evaluations_(evaluations), threads_(static_cast<double>(threads)) {
  for (const Evaluation& each : evaluations) by_tiles_.push_back(&each);
  std::stable_sort(by_tiles_.begin(), by_tiles_.end(),
                   [](const auto* a, const auto* b) { return a->tiles < b->tiles; });
  by_tiles_.erase(std::unique(by_tiles_.begin(), by_tiles_.end(),
                              [](const auto* a, const auto* b) { return a->tiles == b->tiles; }),
                  by_tiles_.end());
}

/// The power law through the two measurements that are next to, or nearest to, a number of tiles.
double Model::at(double tiles, double Evaluation::*time) const {
  if (by_tiles_.size() == 1) return by_tiles_[0]->*time;
  std::size_t right = 1;
  while (right + 1 < by_tiles_.size() && tiles_of(*by_tiles_[right]) < tiles) ++right;
  const Evaluation &a = *by_tiles_[right - 1], &b = *by_tiles_[right];
  if (a.*time <= 0 || b.*time <= 0) return std::max(a.*time, b.*time);
  const double slope = std::log(b.*time / a.*time) / std::log(tiles_of(b) / tiles_of(a));
  return a.*time * std::pow(tiles / tiles_of(a), std::clamp(slope, -kSteepest, kSteepest));
}

double Model::formula(double tiles) const {
  const double dominant =
      std::max(at(tiles, &Evaluation::link_s), at(tiles, &Evaluation::compute_s) / threads_);
  return dominant + (1 - 1 / threads_) * at(tiles, &Evaluation::critical_s);
}

double Model::predict(const Point& point) const {
  constexpr double kNear = 0.01;
  const double count = static_cast<double>(std::max<std::size_t>(1, point.tiles));
  double factor = 0, weights = 0;
  for (const Evaluation& each : evaluations_) {
    const double known = formula(tiles_of(each));
    if (known <= 0) continue;
    const double places = log_ratio(point.places, each.point.places);
    const double streams = log_ratio(point.streams, each.point.streams);
    const double tiles = std::log(count / tiles_of(each));
    const double distance = places * places + streams * streams + tiles * tiles;
    const double weight = 1 / (kNear + distance);
    factor += weight * each.seconds() / known;
    weights += weight;
  }
  const double typical = weights > 0 ? factor / weights : 1;
  return typical * formula(count);
}

}  // namespace weir::cli::tuner
