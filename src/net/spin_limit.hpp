// How long a thread that waits for news looks for them before it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Longer while looking pays, shorter while it does not. One thread.
class SpinLimit {
 public:
  explicit SpinLimit(std::int64_t most_ns) noexcept : most_ns_(most_ns), limit_ns_(most_ns) {}

  /// Returns whether to look once more, after a pause.
  bool again() noexcept {
    if (looks_++ == 0) since_ns_ = sys::now_ns();
    if (sys::now_ns() - since_ns_ >= limit_ns_) return false;
    if (looks_ % kLooksPerYield == 0) {
      sys::yield();
    } else {
      sys::pause();
    }
    return true;
  }
  /// There was something.
  void found() noexcept {
    if (looks_ > 0) limit_ns_ = std::min(most_ns_, 2 * limit_ns_);
    looks_ = 0;
  }
  /// The thread has slept.
  void in_vain() noexcept {
    limit_ns_ = std::max(std::min(kShortest, most_ns_), limit_ns_ / 2);
    looks_ = 0;
  }

 private:
  static constexpr std::int64_t kShortest = 1'000;
  static constexpr unsigned kLooksPerYield = 16;

  const std::int64_t most_ns_;
  std::int64_t limit_ns_, since_ns_ = 0;
  unsigned looks_ = 0;
};

}  // namespace weir::rt
