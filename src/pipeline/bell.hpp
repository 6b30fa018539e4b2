// An event count on which threads of the program wait for a condition.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// ring() costs one load while no thread waits.
class Bell {
 public:
  /// Wakes all waiting threads. Call it after a sequentially consistent change of the condition.
  void ring() noexcept {
    if (listeners_.load(std::memory_order_seq_cst) == 0) return;
    rings_.fetch_add(1, std::memory_order_acq_rel);
    sys::wake_all(rings_);
  }

  /// Calls try_it() after each ring until it returns true or the deadline passes. try_it() must
  /// read the condition sequentially consistently. Returns the last result.
  template <class Try>
  bool listen(std::int64_t deadline_ns, Try&& try_it) {
    if (try_it()) return true;
    listeners_.fetch_add(1, std::memory_order_seq_cst);
    bool done = false;
    for (bool late = false; !done && !late; late = sys::now_ns() >= deadline_ns) {
      const std::uint32_t rings = rings_.load(std::memory_order_acquire);
      done = try_it();
      if (!done) sys::wait(rings_, rings, deadline_ns);
    }
    done = done || try_it();
    listeners_.fetch_sub(1, std::memory_order_relaxed);
    return done;
  }

 private:
  sys::Atomic<std::uint32_t> listeners_{0};
  sys::Atomic<std::uint32_t> rings_{0};
};

}  // namespace weir::rt
