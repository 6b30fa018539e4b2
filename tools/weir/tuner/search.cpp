#include "tuner/search.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "tuner/model.hpp"

namespace weir::cli::tuner {

namespace {

constexpr double kClearly = 0.98;   ///< share of the default's time, when times are noisy
constexpr double kWins = 0.75;      ///< likewise, share of pairs of samples that are won
constexpr std::size_t kEnough = 4;  ///< the default has so many times as many samples at most
constexpr std::size_t kPatience =
    8;  ///< points without improvement after which the search stops following the model
constexpr std::size_t kFinalists = 8;
constexpr std::size_t kStreams[] = {1, 3, 4};

/// How often a sample of one is less than one of the other.
double wins(const Evaluation& one, const Evaluation& other) {
  std::size_t won = 0;
  for (const double mine : one.samples) {
    for (const double theirs : other.samples) won += mine < theirs ? 1 : 0;
  }
  return static_cast<double>(won) / static_cast<double>(one.samples.size() * other.samples.size());
}

}  // namespace

double Evaluation::seconds() const {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  if (sorted.empty()) return std::numeric_limits<double>::infinity();
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

const Evaluation* Search::find(const Point& point) const {
  const auto found = std::find_if(evaluations_.begin(), evaluations_.end(),
                                  [&](const Evaluation& each) { return each.point == point; });
  return found == evaluations_.end() ? nullptr : &*found;
}

/// Of equally fast points the simplest. A few lucky samples are not enough where times are noisy:
/// the default has been measured most often.
const Evaluation& Search::best() const {
  const Evaluation& usual = *find(kDefault);
  const Evaluation* fastest = &usual;
  const double limit = space_.noisy ? kClearly : 1;
  for (const Evaluation& each : evaluations_) {
    if (each.samples.size() * kEnough < usual.samples.size()) continue;
    if (each.seconds() >= limit * usual.seconds()) continue;
    if (space_.noisy && wins(each, usual) < kWins) continue;
    if (fastest == &usual ||
        std::pair(each.seconds(), each.point) < std::pair(fastest->seconds(), fastest->point)) {
      fastest = &each;
    }
  }
  return *fastest;
}

std::vector<std::size_t> Search::places() const {
  std::vector<std::size_t> found;
  for (std::size_t count = 1; count <= space_.most_places; ++count) {
    if (space_.cores % count == 0) found.push_back(count);
  }
  return found;
}

/// Multiples of the places, and for the few tiles below that 1, 2, 3, 4, 6, 8, 12, 16...
std::vector<std::size_t> Search::tiles(std::size_t places) const {
  if (space_.most_tiles == 0) return {kDefault.tiles};
  std::set<std::size_t> found;
  for (std::size_t count = places; count <= space_.most_tiles; count *= 2) {
    found.insert(count);
    if (count + count / 2 <= space_.most_tiles && count / 2 % places == 0) {
      found.insert(count + count / 2);
    }
  }
  for (std::size_t count = 1; count <= space_.most_tiles; count *= 2) {
    found.insert(count);
    if (count > 1 && count + count / 2 <= space_.most_tiles) found.insert(count + count / 2);
  }
  return {found.begin(), found.end()};
}

std::vector<Point> Search::candidates() const {
  std::vector<Point> all;
  for (const std::size_t places : this->places()) {
    for (const std::size_t count : tiles(places)) all.push_back({places, kDefault.streams, count});
  }
  return all;
}

/// Takes one more sample; returns whether the point is possible.
bool Search::sample(const Point& point) {
  std::optional<Evaluation> made = source_.measure(point);
  if (!made) {
    impossible_.push_back(point);
    return false;
  }
  for (Evaluation& each : evaluations_) {
    if (each.point != point) continue;
    each.samples.insert(each.samples.end(), made->samples.begin(), made->samples.end());
    return true;
  }
  evaluations_.push_back(std::move(*made));
  return true;
}

/// Measures a new point; returns whether it is the fastest one so far.
bool Search::improves(const Point& point) {
  const bool known = find(point) != nullptr ||
                     std::find(impossible_.begin(), impossible_.end(), point) != impossible_.end();
  if (known || !has_budget()) return false;
  double before = std::numeric_limits<double>::infinity();
  for (const Evaluation& each : evaluations_) before = std::min(before, each.seconds());
  ++measured_;
  return sample(point) && find(point)->seconds() < before;
}

/// Measures the first points of the model: other numbers of tiles, and other numbers of places; and
/// a run that is not divided, which the model cannot predict because it uses other kernels.
void Search::probe() {
  const std::size_t usual = std::max<std::size_t>(1, find(kDefault)->tiles);
  const std::vector<std::size_t> places = this->places();
  const auto within = [&](std::size_t tiles) {
    return std::clamp(tiles, std::min<std::size_t>(1, space_.most_tiles), space_.most_tiles);
  };
  improves({1, kDefault.streams, within(1)});
  improves({1, kDefault.streams, within(2 * usual)});
  improves({1, kDefault.streams, within(usual / 2)});
  improves({places[places.size() / 2], kDefault.streams, within(usual)});
  improves({places.back(), kDefault.streams, within(usual)});
}

void Search::follow_model() {
  std::size_t in_vain = 0;
  std::vector<Point> left = candidates();
  while (has_budget() && in_vain < kPatience && !left.empty()) {
    const Model model(evaluations_, space_.threads);
    std::vector<double> expected;
    for (const Point& point : left) expected.push_back(model.predict(point));
    const auto least = std::min_element(expected.begin(), expected.end()) - expected.begin();
    const Point point = left[static_cast<std::size_t>(least)];
    left.erase(left.begin() + least);
    if (find(point) != nullptr) continue;
    in_vain = improves(point) ? 0 : in_vain + 1;
  }
}

/// Goes to a neighbour that is faster, until there is none.
void Search::try_neighbours() {
  const std::vector<std::size_t> places = this->places();
  for (bool moved = true; moved && has_budget();) {
    moved = false;
    const Evaluation& here = best();
    const std::size_t tiles = std::max<std::size_t>(1, here.tiles);
    Point from = here.point;
    if (space_.most_tiles > 0) from.tiles = tiles;
    std::vector<Point> neighbours;
    const auto add = [&](std::size_t Point::*what, std::size_t value) {
      neighbours.push_back(from);
      neighbours.back().*what = value;
    };
    for (const std::size_t step : {std::size_t{1}, std::size_t{2}, from.places}) {
      if (tiles + step <= space_.most_tiles) add(&Point::tiles, tiles + step);
      if (tiles > step && space_.most_tiles > 0) add(&Point::tiles, tiles - step);
    }
    const auto at = std::find(places.begin(), places.end(), from.places);
    if (at != places.end() && at + 1 != places.end()) add(&Point::places, *(at + 1));
    if (at != places.end() && at != places.begin()) add(&Point::places, *(at - 1));
    for (const Point& point : neighbours) moved = improves(point) || moved;
  }
}

void Search::try_streams() {
  if (!source_.streams) return;
  for (const std::size_t streams : kStreams) {
    Point point = best().point;
    point.streams = streams;
    improves(point);
  }
}

/// Ever wider tiles with as many cells, as long as that helps.
void Search::try_shapes() {
  constexpr std::size_t kAspects[] = {4, 16, 64};
  if (!source_.shapes) return;
  for (const std::size_t aspect : kAspects) {
    const Evaluation& here = best();
    Point point = here.point;
    point.tiles = std::max<std::size_t>(1, here.tiles);
    point.aspect = aspect;
    if (!improves(point)) return;
  }
}

void Search::try_policies() {
  const Point from = best().point;
  for (const std::string& policy : source_.policies) {
    Point point = from;
    point.policy = policy;
    improves(point);
  }
}

/// Points by their time, the default first.
std::vector<Point> Search::ranked() const {
  std::vector<const Evaluation*> sorted;
  for (const Evaluation& each : evaluations_) {
    if (each.point != kDefault) sorted.push_back(&each);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->seconds() < b->seconds(); });
  std::vector<Point> points = {kDefault};
  for (const Evaluation* each : sorted) points.push_back(each->point);
  return points;
}

void Search::halve() {
  std::size_t samples = 1;
  for (std::size_t finalists = kFinalists; finalists >= 1; finalists /= 2, samples *= 2) {
    std::vector<Point> points = ranked();
    points.resize(std::min(points.size(), finalists + 1));
    for (std::size_t i = 0; i < samples; ++i) {
      for (const Point& point : points) {
        if (!source_.may_go_on()) return;
        sample(point);
      }
    }
  }
}

void Search::run(std::size_t most) {
  most_ = most;
  probe();
  follow_model();
  try_neighbours();
  try_streams();
  try_shapes();
  try_policies();
  try_neighbours();
  if (space_.noisy) halve();
}

void Search::run_exhaustively() {
  most_ = std::numeric_limits<std::size_t>::max();
  for (std::size_t places = 1; places <= space_.most_places; ++places) {
    for (std::size_t tiles = std::min<std::size_t>(1, space_.most_tiles);
         tiles <= space_.most_tiles; ++tiles) {
      improves({places, kDefault.streams, tiles});
    }
  }
}

}  // namespace weir::cli::tuner
