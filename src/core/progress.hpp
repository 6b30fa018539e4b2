// How far a stream has come, for other threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Counts actions that are over. Whoever sees the count sees what they did, and their failures.
class Progress {
 public:
  /// Owner: one more is over.
  void complete() noexcept {
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Owner: whether something failed that no drain has reported. Before complete().
  void set_failed(bool failed) noexcept { failed_.store(failed, std::memory_order_release); }

  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }
  /// Whether that many are over and nothing failed.
  bool completed_without_failure(std::uint64_t enqueued) const noexcept {
    return completed() == enqueued && !failed_.load(std::memory_order_acquire);
  }

 private:
  sys::Atomic<std::uint64_t> completed_{0};
  sys::Atomic<bool> failed_{false};
};

}  // namespace weir::rt
