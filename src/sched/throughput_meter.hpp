// How fast a place works.
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
  /// The place begins to work after it had nothing to do.
  void begin(std::int64_t now_ns) noexcept;
  /// A chunk is over.
  void end(std::int64_t now_ns, std::uint64_t items, double work) noexcept;

  /// Work in a nanosecond; 0: not known yet.
  double speed() const noexcept { return speed_; }
  /// The fewest items at which it has this speed, as far as is known.
  std::uint64_t grain() const noexcept { return grain_; }
  /// When the chunk that is worked on began.
  std::int64_t since_ns() const noexcept { return since_ns_; }

 private:
  struct Mark {
    std::int64_t busy_ns;
    double work;  ///< done until then
    std::uint64_t items;
  };

  /// Over the last `ends` ends.
  double speed_over(std::size_t ends) const noexcept;
  /// Of a chunk, the mean of the last `ends`.
  double items_over(std::size_t ends) const noexcept;
  void detect_drift() noexcept;
  void try_larger(std::uint64_t items, double speed) noexcept;

  static constexpr std::size_t kMarks = 9;
  static constexpr double kDrift = 1.3;  ///< a factor in speed that is no noise
  static constexpr double kGain = 1.1;   ///< a factor in speed that is worth larger chunks

  std::array<Mark, kMarks> marks_{};  ///< a ring
  std::size_t newest_ = 0;
  std::size_t ends_ = 0;  ///< marks before the newest that still matter
  std::int64_t since_ns_ = 0;
  double speed_ = 0;
  double tried_speed_ = 0;  ///< of chunks half as large as `grain_` while that grows
  std::uint64_t grain_ = 1;
  bool growing_ = true;
};

}  // namespace weir::rt
