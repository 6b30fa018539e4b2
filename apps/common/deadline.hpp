// A deadline.
#pragma once

#include <algorithm>
#include <chrono>

#include <weir/weir.hpp>

namespace weir::apps {

/// A common deadline of several waits.
class Deadline {
 public:
  /// `timeout` from now on. A negative timeout, or one that exceeds the clock, means none.
  explicit Deadline(std::chrono::nanoseconds timeout) {
    const Clock::time_point now = Clock::now();
    const bool endless = timeout < timeout.zero() || timeout > Clock::time_point::max() - now;
    if (!endless) end_ = now + timeout;
  }

  /// Returns the remaining time, 0 after the deadline; weir::forever without a deadline.
  std::chrono::nanoseconds remaining_ns() const {
    if (end_ == Clock::time_point::max()) return weir::forever;
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(end_ - Clock::now()));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_ = Clock::time_point::max();
};

}  // namespace weir::apps
