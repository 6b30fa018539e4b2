// How events ended that did not end well.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include <weir/status.h>

#include "base/threads.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// Final statuses of failed, poisoned and cancelled actions whose events somebody may still hold.
/// Slots of actions are reused, so what they cannot remember is kept here: the newest million.
class FailureLog {
 public:
  struct Entry {
    weir_status status = WEIR_STATUS_OK;
    FailureRef failure;
  };

  void add(std::uint64_t id, weir_status status, const FailureRef& failure) noexcept;
  void remove(std::uint64_t id) noexcept;

  /// Returns the entry of an action that is complete; OK when it is not in the log.
  Entry find(std::uint64_t id) const noexcept;

 private:
  static constexpr std::size_t kMost = 1'000'000;

  mutable sys::Mutex mutex_;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::deque<std::uint64_t> order_;
  sys::Atomic<bool> used_{false};
};

}  // namespace weir::rt
