// How fast a place completes items, and by which way fastest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::rt {

/// Measures the throughput of a place from chunk completions, and the smallest chunk that reaches
/// it.
///
/// The throughput is that of the last few chunks, or of the last two if they differ by more than
/// kDrift; the place is then measured anew. Chunk sizes double while larger chunks are faster. If a
/// place slows down with small chunks, larger ones are tried; if it is slower by itself, sizes
/// restart at one item.
class ThroughputMeter {
 public:
  /// The place starts to work after it was idle.
  void begin(std::int64_t now_ns) noexcept;
  /// A chunk has completed.
  void end(std::int64_t now_ns, std::uint64_t items, double work) noexcept;

  /// Returns the work per nanosecond; 0: unknown.
  double speed() const noexcept { return speed_; }
  /// Returns the fewest items per chunk at which the place reaches this speed, as far as is known.
  std::uint64_t grain() const noexcept { return grain_; }
  /// Returns when the current chunk began.
  std::int64_t since_ns() const noexcept { return since_ns_; }

 private:
  struct Mark {
    std::int64_t busy_ns;
    double work;  ///< completed until then
    std::uint64_t items;
  };

  /// Returns the speed over the last `ends` chunks.
  double speed_over(std::size_t ends) const noexcept;
  /// Returns the mean items per chunk over the last `ends` chunks.
  double items_over(std::size_t ends) const noexcept;
  void detect_drift() noexcept;
  void try_larger(std::uint64_t items, double speed) noexcept;

  static constexpr std::size_t kMarks = 9;
  static constexpr double kDrift = 1.3;  ///< a speed ratio beyond noise
  static constexpr double kGain = 1.1;   ///< a speed ratio that justifies larger chunks

  std::array<Mark, kMarks> marks_{};  ///< a ring buffer
  std::size_t newest_ = 0;
  std::size_t ends_ = 0;  ///< number of valid marks before the newest
  std::int64_t since_ns_ = 0;
  double speed_ = 0;
  double tried_speed_ = 0;  ///< speed with chunks of half of `grain_`, while that grows
  std::uint64_t grain_ = 1;
  bool growing_ = true;
};

/// Finds the fastest way of a place: it runs one chunk by each way, from the last to the first.
class WayTrial {
 public:
  /// Starts a trial of ways with chunks of `items` items.
  void begin(std::size_t ways, std::uint64_t items) noexcept {
    untried_ = ways;
    items_ = items;
  }
  bool is_running() const noexcept { return untried_ > 0; }
  /// Returns the size of the next chunk in a trial, 0 if none is running.
  std::uint64_t items() const noexcept { return is_running() ? items_ : 0; }
  /// Returns the way for the next chunk.
  std::size_t next() const noexcept { return is_running() ? untried_ - 1 : best_; }
  /// Records the work per nanosecond of a chunk in a trial.
  void end(std::size_t way, double speed) noexcept {
    if (speed > speed_) {
      speed_ = speed;
      best_ = way;
    }
    --untried_;
  }

  /// Returns the fastest way so far, and its speed; 0: unknown.
  std::size_t best() const noexcept { return best_; }
  double speed() const noexcept { return speed_; }

 private:
  std::size_t untried_ = 0, best_ = 0;
  std::uint64_t items_ = 0;
  double speed_ = 0;
};

}  // namespace weir::rt
