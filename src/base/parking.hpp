// An event count on which idle threads park.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Parks threads without lost wake-ups; waking costs one load while no thread sleeps.
///
/// A sleeper calls prepare(), then checks for work once more, then calls either cancel() or park().
/// A waker first makes the work visible (sequentially consistent), then calls unpark_one().
class Parking {
 public:
  void prepare() noexcept { sleepers_.fetch_add(1, std::memory_order_seq_cst); }

  void cancel() noexcept {
    // A waker may have taken this sleeper already: then consume its token.
    if (!take_sleeper()) use_token();
  }

  void park() noexcept { use_token(); }

  /// Wakes one sleeper, if there is one. Returns whether there was.
  bool unpark_one() noexcept {
    if (sleepers_.load(std::memory_order_seq_cst) == 0 || !take_sleeper()) return false;
    tokens_.fetch_add(1, std::memory_order_release);
    sys::wake_one(tokens_);
    return true;
  }
  void unpark_all() noexcept {
    while (unpark_one()) {
    }
  }

 private:
  bool take_sleeper() noexcept {
    std::uint32_t count = sleepers_.load(std::memory_order_relaxed);
    while (count > 0) {
      if (sleepers_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void use_token() noexcept {
    std::uint32_t tokens = tokens_.load(std::memory_order_relaxed);
    for (;;) {
      if (tokens == 0) {
        sys::wait(tokens_, 0);
        tokens = tokens_.load(std::memory_order_relaxed);
      } else if (tokens_.compare_exchange_weak(tokens, tokens - 1, std::memory_order_acquire)) {
        return;
      }
    }
  }

  alignas(64) sys::Atomic<std::uint32_t> sleepers_{0};  ///< that no waker has taken
  sys::Atomic<std::uint32_t> tokens_{0};                ///< wake-ups not used yet
};

}  // namespace weir::rt
