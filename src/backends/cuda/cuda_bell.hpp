// Where the thread of a place sleeps.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Wakes one thread. notify() costs one atomic operation while that thread is awake.
class CudaBell {
 public:
  /// After what the sleeper looks at has changed (sequentially consistent). Any thread.
  void notify() noexcept {
    notifications_.fetch_add(1, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst)) sys::wake_one(notifications_);
  }

  /// Sleeps until somebody rings, or the deadline, unless stirring() says that there is no need.
  template <class Stirring>
  void park(std::int64_t deadline_ns, Stirring stirring) noexcept {
    const std::uint32_t seen = notifications_.load(std::memory_order_seq_cst);
    parked_.store(true, std::memory_order_seq_cst);
    if (!stirring()) sys::wait(notifications_, seen, deadline_ns);
    parked_.store(false, std::memory_order_relaxed);
  }

 private:
  sys::Atomic<std::uint32_t> notifications_{0};
  sys::Atomic<bool> parked_{false};
};

}  // namespace weir::rt
