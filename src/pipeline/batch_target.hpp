// How many items the batches of a device get.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"
#include "pipeline/batch_costs.hpp"

namespace weir::rt {

/// Chooses the size of batches from the times of earlier ones.
///
/// A busy device completes a batch of n items o + n t + (n - m) r after the batch before, which had
/// m items: o is the cost of a launch with its copies, which does not depend on n, t the time of an
/// item in the part that limits the device, such as its link, and r that in the parts behind. They
/// come from a least-squares fit over the last batches. The target is the n for which n t is 32
/// times o, and at least 100 microseconds. Until the fit, each batch may be twice as large as the
/// one before, unless batches take a millisecond. To notice changes, every 16th target is doubled.
///
/// Example: copies of 10 us and 0.25 us for each item, and nothing behind them. Batches of 64 and
/// 128 take 26 us and 42 us, so o = 10 us, t = 0.25 us, and the target is 32 x 10 / 0.25 = 1280.
class BatchTarget {
 public:
  /// Targets begin with `first`, or with known costs, and are at most `most`; if `first` and `most`
  /// are equal, they stay the same.
  BatchTarget(std::size_t first, std::size_t most, const BatchCosts& known = {}) noexcept
      : most_(std::max<std::size_t>(most, 1)),
        fixed_(first >= most_),
        target_(std::clamp<std::size_t>(first, 1, most_)),
        measured_(fixed_) {
    if (fixed_ || !known.known()) return;
    costs_ = known;
    fitted_ = true;
    set(costs_.target);
    measured_.store(true, std::memory_order_relaxed);
    knows_costs_.store(true, std::memory_order_relaxed);
  }

  /// Any thread.
  std::size_t items() const noexcept { return target_.load(std::memory_order_relaxed); }
  bool fixed() const noexcept { return fixed_; }
  /// Returns how many of `waiting` items a batch gets while `in_flight` are in batches before it.
  /// If no items follow, k batches end after T + T' / k + k o, where T is the time of all items in
  /// the part that limits the device and T' that in its other parts, which overlap: k is best at
  /// the root of T' / o. T' is taken to be half of T. Items behind three times as many are not
  /// divided so: the device is busy for longer than T'. Any thread.
  std::size_t items_of(std::size_t waiting, std::size_t in_flight) const noexcept {
    const std::size_t target = items();
    if (!knows_costs() || in_flight >= kBusy * waiting) return target;
    const double best = std::sqrt(static_cast<double>(waiting) * static_cast<double>(target)) / 4;
    return std::clamp(static_cast<std::size_t>(best), least(), target);
  }
  /// Returns the fewest items that are worth a launch beside two others. Any thread.
  std::size_t least() const noexcept {
    return knows_costs() ? std::max<std::size_t>(items() / kMostParts, 1) : items();
  }
  /// Returns what later targets for the same kernel begin with. The thread that notes.
  BatchCosts costs() const noexcept { return fixed_ || !fitted_ ? BatchCosts() : costs_; }
  /// Whether batches have been measured. Any thread.
  bool measured() const noexcept { return measured_.load(std::memory_order_relaxed); }

  /// Before the first measurement: the next batch may be larger. Called for each launch, by one
  /// thread at a time.
  void note_launch() noexcept {
    if (!measured()) set(2 * items());
  }
  /// Notes a complete batch. Called in the order of launches, by one thread at a time.
  void note(std::size_t items, std::int64_t launched_ns, std::int64_t completed_ns) noexcept {
    if (fixed_) return;
    const bool first = !measured();
    const bool queued = !first && launched_ns < last_ns_ && completed_ns > last_ns_;
    const std::int64_t before_ns = last_ns_;
    last_ns_ = first ? completed_ns : std::max(last_ns_, completed_ns);
    measured_.store(true, std::memory_order_relaxed);
    const auto n = static_cast<double>(items), more = n - static_cast<double>(last_items_);
    last_items_ = items;
    if (queued) add(n, more, static_cast<double>(completed_ns - before_ns));
    const std::int64_t took_ns = first ? completed_ns - launched_ns : completed_ns - before_ns;
    if (queued && fitted_) {
      choose(items);
      knows_costs_.store(true, std::memory_order_relaxed);
    } else if (first || queued) {
      grow(items, took_ns);
    }
  }

 private:
  static constexpr double kShare = 32, kLeastNs = 100'000, kMemory = 0.9, kSpread = 0.01,
                          kRidge = 1e-4;
  static constexpr std::int64_t kLongNs = 1'000'000;
  static constexpr unsigned kTrials = 16;
  static constexpr std::size_t kBusy = 3, kMostParts = 8;

  bool knows_costs() const noexcept { return knows_costs_.load(std::memory_order_relaxed); }

  void set(std::size_t wanted) noexcept {
    target_.store(std::clamp<std::size_t>(wanted, 1, most_), std::memory_order_relaxed);
  }

  /// Before the fit: doubles the target, unless a batch took so long that no launch matters beside
  /// it; then batches get as many items as take that long.
  void grow(std::size_t items, std::int64_t took_ns) noexcept {
    if (took_ns < kLongNs) return set(2 * this->items());
    const double share = static_cast<double>(kLongNs) / static_cast<double>(took_ns);
    set(static_cast<std::size_t>(static_cast<double>(items) * share));
  }

  /// Decaying sums over samples (x, y): their mean products are covariances.
  struct Sums {
    double of_x = 0, of_y = 0, of_products = 0;
    void add(double x, double y) noexcept {
      of_x = kMemory * of_x + x;
      of_y = kMemory * of_y + y;
      of_products = kMemory * of_products + x * y;
    }
    double covariance(double weight) const noexcept {
      return of_products / weight - of_x / weight * (of_y / weight);
    }
  };

  /// Adds a sample to the fit: at most four times what the fit expects.
  void add(double n, double more, double ns) noexcept {
    const auto& [launch_ns, item_ns, tail_ns, target] = costs_;
    if (fitted_) ns = std::min(ns, 4 * (launch_ns + n * item_ns + std::max(more, 0.0) * tail_ns));
    weight_ = kMemory * weight_ + 1;
    n_n_.add(n, n);
    n_more_.add(n, more);
    more_more_.add(more, more);
    n_ns_.add(n, ns);
    more_ns_.add(more, ns);
    fit();
  }

  void fit() noexcept {
    auto& [launch_ns, item_ns, tail_ns, target] = costs_;
    const double n = n_n_.of_x / weight_, more = more_more_.of_x / weight_;
    const double ns = n_ns_.of_y / weight_;
    const double sizes = n_n_.covariance(weight_), both = n_more_.covariance(weight_);
    if (sizes > kSpread * n * n) {
      // The ridge keeps the equations solvable when sizes double from batch to batch.
      const double changes = more_more_.covariance(weight_) + kRidge * n * n;
      const double by_size = n_ns_.covariance(weight_), by_change = more_ns_.covariance(weight_);
      tail_ns =
          std::max((by_change * sizes - by_size * both) / (sizes * changes - both * both), 0.0);
      item_ns = std::clamp((by_size - tail_ns * both) / sizes, 0.0, ns / n);
      launch_ns = std::max(ns - item_ns * n - tail_ns * more, 0.0);
      fitted_ = true;
    } else if (fitted_) {  // sizes hardly differ: the cost of a launch is known
      launch_ns = std::min(launch_ns, ns);
      item_ns = (ns - launch_ns) / n;
    }
  }

  /// Halves the target at most, or doubles it from the batches that there are.
  void choose(std::size_t measured) noexcept {
    auto& [launch_ns, item_ns, tail_ns, target] = costs_;
    const double wanted = std::max(kShare * launch_ns, kLeastNs);
    const std::size_t known = std::max(2 * std::max(measured, target), items());
    const std::size_t at_most = std::min(known, most_);
    const std::size_t at_least = std::max<std::size_t>(target / 2, 1);
    const double room = static_cast<double>(at_most) * item_ns;
    target = wanted >= room ? at_most : static_cast<std::size_t>(wanted / item_ns);
    target = std::max(std::max<std::size_t>(target, 1), std::min(at_least, at_most));
    set(++choices_ % kTrials == 0 ? 2 * target : target);
  }

  const std::size_t most_;
  const bool fixed_;
  sys::Atomic<std::size_t> target_;
  sys::Atomic<bool> measured_;
  sys::Atomic<bool> knows_costs_{false};  ///< the target follows from them
  // Of the thread that notes.
  std::int64_t last_ns_ = 0;  ///< end of the last batch
  std::size_t last_items_ = 0;
  double weight_ = 0;  ///< of all samples
  Sums n_n_, n_more_, more_more_, n_ns_, more_ns_;
  bool fitted_ = false;
  BatchCosts costs_{0, 0, 0, 1};  ///< o, t and r; the target without trials
  unsigned choices_ = 0;
};

}  // namespace weir::rt
