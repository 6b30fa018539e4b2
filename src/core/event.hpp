// Completion of an action, seen from other threads.
//
// An event names (slot of the action, id of the action), and the runtime of both. Slots are never
// unmapped while the runtime lives and their `state` holds the id of the action in them, so a stale
// event is recognised without reference counts: its action is complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <weir/status.h>

#include "base/plain.hpp"
#include "base/threads.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// A completion callback. The waiting party owns it and keeps it alive until deliver() was called
/// or EventState::unwatch() returned true.
struct Waiter {
  sys::Plain<Waiter*> next = nullptr;
  /// Called once, on the completing thread, under no lock. May destroy the waiter.
  void (*deliver)(Waiter& self, weir_status status, const FailureRef& failure) = nullptr;
};

/// What other threads may look at of an action: which one is in the slot, and who waits for it. The
/// waiters are kept elsewhere in the slot: few actions have any.
class EventState {
 public:
  /// Puts a new action in the slot. Ids are unique in the runtime and below 2^63; 0 is "none". Who
  /// finds it instead of an earlier action sees the effects of that, as the caller does.
  void open(std::uint64_t id) noexcept { word_.store(id << kShift, std::memory_order_release); }

  /// The action in the slot, for its owner.
  std::uint64_t id() const noexcept { return word_.load(std::memory_order_relaxed) >> kShift; }

  /// Whether action `id` is complete; then its effects are visible to the caller.
  bool is_complete(std::uint64_t id) const noexcept {
    return word_.load(std::memory_order_acquire) >> kShift != id;
  }

  /// Adds a waiter to action `id`. Returns false, and does nothing, when it is complete; then its
  /// effects are visible to the caller.
  bool watch(std::uint64_t id, sys::Plain<Waiter*>& waiters, Waiter& waiter) noexcept {
    if (!lock(id)) return false;
    waiter.next = waiters;
    waiters = &waiter;
    unlock(id);
    return true;
  }

  /// Takes a waiter back. Returns false when it was, or is just being, delivered.
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

  /// Calls use() before action `id` is completed, and one at a time. Returns false, having done
  /// nothing, when it is complete.
  template <class Use>
  bool guard(std::uint64_t id, Use&& use) noexcept {
    if (!lock(id)) return false;
    use();
    unlock(id);
    return true;
  }

  /// Completes the action and returns its waiters, in the order in which they came, which the
  /// caller delivers.
  Waiter* close(std::uint64_t id, sys::Plain<Waiter*>& waiters) noexcept {
    lock(id);
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
