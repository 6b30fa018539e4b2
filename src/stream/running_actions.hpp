// The actions that the workers of a place run, for the watchdog.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

/// One entry per worker, which only that worker writes. Any thread may read.
class RunningActions {
 public:
  struct Entry {
    unsigned worker = 0;
    std::array<char, ActionRecord::kNameBytes> label{};
    std::uint64_t id = 0;  ///< id of the action; 0: none
    std::int64_t since_ns = 0;
  };

  explicit RunningActions(std::size_t workers) : slots_(workers) {}

  void begin(unsigned worker, const Action& action) noexcept;
  void end(unsigned worker) noexcept;
  /// Returns the entries of workers that run an action. Throws std::bad_alloc.
  std::vector<Entry> list() const;

 private:
  struct alignas(64) Slot {
    mutable SpinLock lock;
    Entry entry WEIR_GUARDED_BY(lock);
  };
  std::vector<Slot> slots_;
};

}  // namespace weir::rt
