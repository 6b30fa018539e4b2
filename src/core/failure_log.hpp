// The outcomes of actions that failed, were poisoned or cancelled.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include <weir/status.h>

#include "base/threads.hpp"
#include "core/action.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// Final statuses of failed, poisoned and cancelled actions whose events the program may still
/// have. Action slots are reused, so the log keeps the outcomes: the newest million entries, about
/// 70 MB. Events are plain values without a reference count, so the log cannot drop an entry with
/// its last event.
class FailureLog {
 public:
  struct Entry {
    weir_status status = WEIR_STATUS_OK;
    FailureRef failure;
  };

  /// Records the outcome of a completed action. Without memory it keeps the action's slot instead,
  /// which must then not be reused, and returns true.
  [[nodiscard]] bool add(Action& action) noexcept { return add(action, &FailureLog::kept_); }
  /// Records the outcome of a completed task, likewise.
  [[nodiscard]] bool add(Ticket& ticket) noexcept {
    return add(ticket, &FailureLog::kept_tickets_);
  }
  void remove(std::uint64_t id) noexcept;

  /// Returns the entry of a completed action; OK if it is not in the log.
  Entry find(std::uint64_t id) const noexcept;

 private:
  static constexpr std::size_t kMaxEntries = 1'000'000;

  template <class Slot>
  bool add(Slot& slot, Slot* FailureLog::*kept) noexcept;
  template <class Visit>
  void each_kept(Visit&& visit) const WEIR_REQUIRES(mutex_);
  void forget_oldest() noexcept WEIR_REQUIRES(mutex_);
  Entry kept(std::uint64_t id) const noexcept WEIR_REQUIRES(mutex_);

  mutable sys::Mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_ WEIR_GUARDED_BY(mutex_);
  /// Ids of `entries_`, the oldest first, and of removed ones.
  std::deque<std::uint64_t> order_ WEIR_GUARDED_BY(mutex_);
  Action* kept_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< slots, linked by `next`
  Ticket* kept_tickets_ WEIR_GUARDED_BY(mutex_) = nullptr;
  sys::Atomic<bool> used_{false};
};

}  // namespace weir::rt
