// Waits for a group of events without a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include <weir/event.h>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

class Context;

/// Completes when all its events are complete. Can then be opened again.
class EventGroup {
 public:
  /// Throws std::bad_alloc.
  explicit EventGroup(Context& context) : context_(context) {}
  EventGroup(const EventGroup&) = delete;
  EventGroup& operator=(const EventGroup&) = delete;

  /// Opens the group. One thread adds events from here to close().
  void open() noexcept {
    outcome_ = Outcome();
    reopen();
  }
  /// The same, but keeps an earlier failure.
  void reopen() noexcept {
    watches_.clear();
    open_count_.store(1, std::memory_order_relaxed);
  }
  /// Adds the event that enqueue() returns. Throws std::bad_alloc, having enqueued nothing, or what
  /// enqueue() throws.
  template <class Enqueue>
  void add(Enqueue&& enqueue) {
    Watch& watch = watches_.emplace_back();
    watch_for(watch, enqueue());
  }
  void fail(Outcome outcome) noexcept;
  /// Ends adding events. The group may be destroyed before this returns.
  void close() noexcept { release(); }
  /// The same, but returns true instead of calling on_complete() if all events are complete.
  bool close_and_check() noexcept {
    return open_count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  /// Returns the first failure. Valid when the group is complete.
  const Outcome& outcome() const noexcept { return outcome_; }

 protected:
  ~EventGroup() = default;
  /// Called once per open(), by the thread that completes the last event or calls close().
  virtual void on_complete() noexcept = 0;

 private:
  struct Watch : Waiter {
    EventGroup* group = nullptr;
  };
  void watch_for(Watch& watch, const weir_event& event) noexcept;
  static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure);
  void note(weir_status status, const FailureRef& failure) noexcept;
  void release() noexcept {
    if (close_and_check()) on_complete();
  }

  Context& context_;
  std::deque<Watch> watches_;
  sys::Atomic<std::uint32_t> open_count_{0};
  SpinLock noting_;
  Outcome outcome_;
};

}  // namespace weir::rt
