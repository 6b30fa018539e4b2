// The progress of a stream, for other threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Counts completed actions. A thread that reads the count sees the effects and failures of these
/// actions.
class Progress {
 public:
  /// Owner: adds one completed action.
  void complete() noexcept {
    completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Owner: whether an action has failed that no drain has reported. Called before complete().
  void set_failed(bool failed) noexcept { failed_.store(failed, std::memory_order_release); }

  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }
  /// Whether that many actions are complete and none has failed.
  bool completed_without_failure(std::uint64_t enqueued) const noexcept {
    return completed() == enqueued && !failed_.load(std::memory_order_acquire);
  }

 private:
  sys::Atomic<std::uint64_t> completed_{0};
  sys::Atomic<bool> failed_{false};
};

}  // namespace weir::rt
