// How long a thread that waits for news looks for them before it sleeps, and how long it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// How long a thread sleeps where news wake nobody: such a part of the time that nothing has come.
struct Naps {
  std::int64_t part;
  std::int64_t longest_ns;

  static constexpr std::int64_t kShortest = 100'000;
};
/// Of a thread that waits for something: little of the wait is lost.
inline constexpr Naps kNapsOfWaiters{8, 500'000};
/// Of one that looks for others: it takes little from those who compute.
inline constexpr Naps kNapsBesideWork{2, 2'000'000};

/// Longer while looking pays, shorter while it does not. One thread.
class SpinLimit {
 public:
  explicit SpinLimit(std::int64_t most_ns, const Naps& naps = kNapsOfWaiters) noexcept
      : most_ns_(most_ns), naps_(naps), limit_ns_(most_ns) {}

  /// Returns whether to look once more, after a pause.
  bool again() noexcept {
    const std::int64_t now = sys::now_ns();
    if (looks_++ == 0) since_ns_ = now;
    if (quiet_since_ns_ == 0) quiet_since_ns_ = now;
    if (now - since_ns_ >= limit_ns_) return false;
    if (looks_ % kLooksPerYield == 0) {
      sys::yield();
    } else {
      sys::pause();
    }
    return true;
  }
  /// There was something: also behind a sleep, which a longer look would have spared.
  void found() noexcept {
    if (looks_ > 0) {
      limit_ns_ = std::min(most_ns_, 2 * limit_ns_);
    } else if (limit_ns_ < most_ns_) {
      const std::int64_t taken = sys::now_ns() - since_ns_;
      if (taken < most_ns_) limit_ns_ = std::clamp(2 * taken, limit_ns_, most_ns_);
    }
    looks_ = 0;
    since_ns_ = 0;
    others_look();
  }
  /// Somebody else finds what there is.
  void others_look() noexcept { quiet_since_ns_ = 0; }
  /// The thread has slept.
  void in_vain() noexcept {
    limit_ns_ = std::max(std::min(kShortest, most_ns_), limit_ns_ / 2);
    looks_ = 0;
  }
  /// Until when to nap. Behind again().
  std::int64_t end_of_nap() const noexcept {
    const std::int64_t now = sys::now_ns();
    const std::int64_t quiet = now - quiet_since_ns_;
    return now + std::clamp(quiet / naps_.part, Naps::kShortest, naps_.longest_ns);
  }

 private:
  static constexpr std::int64_t kShortest = 1'000;
  static constexpr unsigned kLooksPerYield = 16;

  const std::int64_t most_ns_;
  const Naps naps_;
  std::int64_t limit_ns_;
  std::int64_t since_ns_ = 0;  ///< of the looks, also when they have ended in a sleep; 0: none
  std::int64_t quiet_since_ns_ = 0;  ///< 0: not yet
  unsigned looks_ = 0;
};

}  // namespace weir::rt
