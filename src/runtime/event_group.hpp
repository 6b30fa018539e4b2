// Events that one thing waits for, without a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>

#include <weir/event.h>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "runtime/runtime.hpp"

namespace weir::rt {

/// Is over when all its events are complete. Can be opened again then.
class EventGroup {
 public:
  explicit EventGroup(Runtime& runtime) noexcept : runtime_(runtime) {}
  EventGroup(const EventGroup&) = delete;
  EventGroup& operator=(const EventGroup&) = delete;

  /// From here to close() one thread adds events.
  void open() noexcept {
    watches_.clear();
    outcome_ = Outcome();
    open_count_.store(1, std::memory_order_relaxed);
  }
  /// Throws std::bad_alloc.
  void add(const weir_event& event) {
    Watch& watch = watches_.emplace_back();
    watch.group = this;
    watch.deliver = on_end;
    const std::uint64_t id = event.opaque[1];
    open_count_.fetch_add(1, std::memory_order_relaxed);
    if (id != 0 && runtime_.slot_of(event).watch(id, watch)) return;
    if (id != 0) {
      const FailureLog::Entry entry = runtime_.failures().find(id);
      note(entry.status, entry.failure);
    }
    open_count_.fetch_sub(1, std::memory_order_relaxed);
  }
  void fail(Outcome outcome) noexcept {
    const SpinGuard guard(noting_);
    if (outcome_.ok()) outcome_ = std::move(outcome);
  }
  /// All are added. The group may be gone when this returns.
  void close() noexcept { release(); }

  /// The first failure that was seen, when it is over.
  const Outcome& outcome() const noexcept { return outcome_; }

 protected:
  ~EventGroup() = default;
  /// Called once for each open(), on the thread that completed the last event or called close().
  virtual void over() noexcept = 0;

 private:
  struct Watch : Waiter {
    EventGroup* group = nullptr;
  };
  static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
    EventGroup& group = *static_cast<Watch&>(waiter).group;
    group.note(status, failure);
    group.release();
  }
  void note(weir_status status, const FailureRef& failure) noexcept {
    if (status == WEIR_STATUS_OK) return;
    try {
      fail(failure ? Outcome{failure->status, failure->describe(false)}
                   : Outcome{status, status_name(status)});
    } catch (...) {
      fail(current_exception_outcome(status));
    }
  }
  void release() noexcept {
    if (open_count_.fetch_sub(1, std::memory_order_acq_rel) == 1) over();
  }

  Runtime& runtime_;
  std::deque<Watch> watches_;
  sys::Atomic<std::uint32_t> open_count_{0};
  SpinLock noting_;
  Outcome outcome_;
};

}  // namespace weir::rt
