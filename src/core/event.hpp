// The completion state of an action, shared by all threads.
//
// An event is (runtime, slot of the action, id of the action). Slots are never unmapped while the
// runtime lives, and a slot's state holds the id of its current action. A stale event is therefore
// recognised without reference counts: its action is complete.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>

#include <weir/status.h>

#include "base/plain.hpp"
#include "base/threads.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// The callback record of a thread or object that waits for an event. The waiting party owns it and
/// keeps it alive until deliver() was called or EventState::unwatch() returned true.
struct Waiter {
  sys::Plain<Waiter*> next = nullptr;
  /// Called once, on the completing thread, with no lock held. May destroy the waiter.
  void (*deliver)(Waiter& self, weir_status status, const FailureRef& failure) = nullptr;
};

/// The id of the current action of a slot, and the lock of its waiters. The list of waiters is
/// elsewhere in the slot, because few actions have any. Any thread.
class EventState {
 public:
  /// Puts a new action into the slot. Ids are unique in the runtime, below 2^63 and not 0. A thread
  /// that finds the new id sees the effects of the earlier action, as the caller does.
  void open(std::uint64_t id) noexcept {
    assert(id != 0);
    word_.store(id << kShift, std::memory_order_release);
  }

  /// Returns the id of the current action. Owner of the slot only.
  std::uint64_t id() const noexcept { return word_.load(std::memory_order_relaxed) >> kShift; }

  /// Whether action `id` is complete; then its effects are visible to the caller.
  bool is_complete(std::uint64_t id) const noexcept {
    return word_.load(std::memory_order_acquire) >> kShift != id;
  }

  /// Adds a waiter to action `id`. Returns false, and does nothing, if the action is complete; its
  /// effects are then visible to the caller.
  bool watch(std::uint64_t id, sys::Plain<Waiter*>& waiters, Waiter& waiter) noexcept {
    if (!lock(id)) return false;
    waiter.next = waiters;
    waiters = &waiter;
    unlock(id);
    return true;
  }

  /// Removes a waiter. Returns false if it was delivered or is being delivered.
  bool unwatch(std::uint64_t id, sys::Plain<Waiter*>& waiters, Waiter& waiter) noexcept {
    if (!lock(id)) return false;
    bool found = false;
    for (sys::Plain<Waiter*>* link = &waiters; *link != nullptr; link = &(*link)->next) {
      if (*link == &waiter) {
        *link = waiter.next;
        found = true;
        break;
      }
    }
    unlock(id);
    return found;
  }

  /// Calls use() under the lock of action `id`, before the action completes. Returns false, and
  /// does nothing, if it is complete.
  template <class Use>
  bool guard(std::uint64_t id, Use&& use) noexcept {
    if (!lock(id)) return false;
    use();
    unlock(id);
    return true;
  }

  /// Completes the action. Returns its waiters in the order of watch(); the caller delivers them.
  Waiter* close(std::uint64_t id, sys::Plain<Waiter*>& waiters) noexcept {
    [[maybe_unused]] const bool current = lock(id);
    assert(current);  // an action completes once
    Waiter* list = std::exchange(waiters, nullptr);
    word_.store(0, std::memory_order_release);
    Waiter* result = nullptr;
    while (list != nullptr) {
      Waiter* const waiter = std::exchange(list, list->next);
      waiter->next = std::exchange(result, waiter);
    }
    return result;
  }

 private:
  static constexpr unsigned kShift = 1;
  static constexpr std::uint64_t kLocked = 1;

  bool lock(std::uint64_t id) noexcept {
    std::uint64_t expected = id << kShift;
    while (!word_.compare_exchange_weak(expected, (id << kShift) | kLocked,
                                        std::memory_order_acquire)) {
      if (expected >> kShift != id) return false;
      expected = id << kShift;
      sys::pause();
    }
    return true;
  }
  void unlock(std::uint64_t id) noexcept { word_.store(id << kShift, std::memory_order_release); }

  sys::Atomic<std::uint64_t> word_{0};
};

}  // namespace weir::rt
