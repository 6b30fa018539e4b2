// The lock of the owner of a task queue.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Flat combining: a thread that finds the lock taken leaves its work to the holder, the owner,
/// that looks again before it unlocks. Any thread.
class WEIR_CAPABILITY("combining lock") CombiningLock {
 public:
  enum class State : std::uint8_t {
    free,
    binding,     ///< the holder checks for new work when it unlocks
    inspecting,  ///< the holder does not: threads that add work wait for the lock
  };

  /// Returns whether the lock was free, and takes it.
  bool try_lock_as(State owner) noexcept WEIR_TRY_ACQUIRE(true) {
    State expected = State::free;
    return state_.compare_exchange_strong(expected, owner);
  }
  void lock() noexcept WEIR_ACQUIRE() {
    while (!try_lock_as(State::binding)) sys::yield();
  }
  void unlock() noexcept WEIR_RELEASE() { state_.store(State::free); }
  State state() const noexcept { return state_.load(); }

  /// Says that there is something to do for the owner. The caller then tries the lock.
  void add_work() noexcept { has_work_.store(true); }
  bool has_work() const noexcept { return has_work_.load(); }
  bool take_work() noexcept { return has_work_.exchange(false); }

 private:
  sys::Atomic<State> state_{State::free};
  sys::Atomic<bool> has_work_{false};
};

}  // namespace weir::rt
