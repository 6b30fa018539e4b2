// The failed jobs of a place, for jobs that wait for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

/// The recently failed jobs of a place. A job may name a predecessor that was returned long ago,
/// because failures in other streams arrive late. Costs nothing while there are none.
class FailedJobs {
 public:
  /// At most `window` jobs are in flight.
  explicit FailedJobs(std::size_t window) : kept_(16 * window) { numbers_.reserve(kept_ + window); }

  /// Adds a job, if it is not there. Called before the jobs that wait for it can see its
  /// completion. Any thread.
  void add(std::uint64_t number) noexcept {
    const sys::Lock lock(mutex_);
    if (std::find(numbers_.begin(), numbers_.end(), number) != numbers_.end()) return;
    numbers_.push_back(number);
    any_.store(true, std::memory_order_release);
  }

  /// Returns whether one of the jobs has failed. Any thread.
  bool any_of(std::span<const std::uint64_t> jobs) const noexcept {
    if (!any_.load(std::memory_order_acquire)) return false;
    const sys::Lock lock(mutex_);
    const auto failed = [this](std::uint64_t job) WEIR_REQUIRES(mutex_) {
      return std::find(numbers_.begin(), numbers_.end(), job) != numbers_.end();
    };
    return std::any_of(jobs.begin(), jobs.end(), failed);
  }

  /// Drops old jobs. `first` is the oldest job in flight.
  void forget_before(std::uint64_t first) noexcept {
    if (!any_.load(std::memory_order_relaxed)) return;
    const sys::Lock lock(mutex_);
    std::erase_if(numbers_, [&](std::uint64_t job) { return job + kept_ <= first; });
    any_.store(!numbers_.empty(), std::memory_order_relaxed);
  }

 private:
  const std::uint64_t kept_;
  mutable sys::Mutex mutex_;
  std::vector<std::uint64_t> numbers_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<bool> any_{false};
};

}  // namespace weir::rt
