// How long a waiting thread spins before it sleeps, and how long it sleeps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Length of sleeps where arrivals cannot wake a thread: a fraction of the time since the last one.
struct Sleeps {
  std::int64_t part;
  std::int64_t longest_ns;

  static constexpr std::int64_t kShortest = 100'000;
};
/// For a waiting thread: the sleep adds little to the wait.
inline constexpr Sleeps kSleepsOfWaiters{8, 500'000};
/// For a thread that polls for others: it takes little time from threads that compute.
inline constexpr Sleeps kSleepsBesideWork{2, 2'000'000};

/// An adaptive spin limit: longer while spinning pays, shorter while it does not. One thread.
class SpinLimit {
 public:
  explicit SpinLimit(std::int64_t most_ns, const Sleeps& sleeps = kSleepsOfWaiters) noexcept
      : most_ns_(most_ns), sleeps_(sleeps), limit_ns_(most_ns) {}

  /// Returns whether to poll once more, after a pause.
  bool again() noexcept {
    const std::int64_t now = sys::now_ns();
    if (polls_++ == 0) since_ns_ = now;
    if (quiet_since_ns_ == 0) quiet_since_ns_ = now;
    if (now - since_ns_ >= limit_ns_) return false;
    if (polls_ % kPollsPerYield == 0) {
      sys::yield();
    } else {
      sys::pause();
    }
    return true;
  }
  /// Records that a poll found something, also after a sleep that a longer spin would have avoided.
  void found() noexcept {
    if (polls_ > 0) {
      limit_ns_ = std::min(most_ns_, 2 * limit_ns_);
    } else if (limit_ns_ < most_ns_) {
      const std::int64_t taken = sys::now_ns() - since_ns_;
      if (taken < most_ns_) limit_ns_ = std::clamp(2 * taken, limit_ns_, most_ns_);
    }
    polls_ = 0;
    since_ns_ = 0;
    others_poll();
  }
  /// Records that other threads are polling.
  void others_poll() noexcept { quiet_since_ns_ = 0; }
  /// Records a sleep that followed spinning without a result.
  void found_nothing() noexcept {
    limit_ns_ = std::max(std::min(kShortest, most_ns_), limit_ns_ / 2);
    polls_ = 0;
  }
  /// Returns when to end the sleep. Call it after again().
  std::int64_t end_of_sleep() const noexcept {
    const std::int64_t now = sys::now_ns();
    const std::int64_t quiet = now - quiet_since_ns_;
    return now + std::clamp(quiet / sleeps_.part, Sleeps::kShortest, sleeps_.longest_ns);
  }

 private:
  static constexpr std::int64_t kShortest = 1'000;
  static constexpr unsigned kPollsPerYield = 16;

  const std::int64_t most_ns_;
  const Sleeps sleeps_;
  std::int64_t limit_ns_;
  std::int64_t since_ns_ = 0;  ///< when spinning began, also if it has ended in a sleep; 0: not yet
  std::int64_t quiet_since_ns_ = 0;  ///< when polls began to find nothing; 0: not yet
  unsigned polls_ = 0;
};

}  // namespace weir::rt
