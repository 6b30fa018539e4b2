// Until when something may last.
#pragma once

#include <algorithm>
#include <chrono>

#include <weir/weir.hpp>

namespace weir::apps {

/// An end of several waits together.
class Deadline {
 public:
  /// After a timeout from now on. There is no end with a negative one, or one that no clock counts.
  explicit Deadline(std::chrono::nanoseconds timeout) {
    const Clock::time_point now = Clock::now();
    const bool endless = timeout < timeout.zero() || timeout > Clock::time_point::max() - now;
    if (!endless) end_ = now + timeout;
  }

  /// The time that is left, 0 when it is over; weir::forever: without an end.
  std::chrono::nanoseconds remaining_ns() const {
    if (end_ == Clock::time_point::max()) return weir::forever;
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(end_ - Clock::now()));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_ = Clock::time_point::max();
};

}  // namespace weir::apps
