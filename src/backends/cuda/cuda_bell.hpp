// Where the thread of a place sleeps.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Wakes one thread. Costs those who ring next to nothing while it is awake.
class CudaBell {
 public:
  /// After what the sleeper looks at has changed (sequentially consistent). Any thread.
  void ring() noexcept {
    rings_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst)) sys::wake_one(rings_);
  }

  /// Sleeps until somebody rings, or the deadline, unless stirring() says that there is no need.
  template <class Stirring>
  void sleep(std::int64_t deadline_ns, Stirring stirring) noexcept {
    const std::uint32_t seen = rings_.load(std::memory_order_seq_cst);
    sleeping_.store(true, std::memory_order_seq_cst);
    if (!stirring()) sys::wait(rings_, seen, deadline_ns);
    sleeping_.store(false, std::memory_order_relaxed);
  }

 private:
  sys::Atomic<std::uint32_t> rings_{0};
  sys::Atomic<bool> sleeping_{false};
};

}  // namespace weir::rt
