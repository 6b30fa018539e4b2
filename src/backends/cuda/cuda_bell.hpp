// The event count on which the thread of a place parks.
#pragma once

#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// For one parking thread. notify() costs one atomic operation while that thread is awake.
class CudaBell {
 public:
  /// Call after a sequentially consistent change of the state that the predicate of park() reads.
  /// Any thread.
  void notify() noexcept {
    notifications_.fetch_add(1, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst)) sys::wake_one(notifications_);
  }

  /// Parks until notify() or the deadline, unless has_work() returns true.
  template <class HasWork>
  void park(std::int64_t deadline_ns, HasWork has_work) noexcept {
    const std::uint32_t seen = notifications_.load(std::memory_order_seq_cst);
    parked_.store(true, std::memory_order_seq_cst);
    if (!has_work()) sys::wait(notifications_, seen, deadline_ns);
    parked_.store(false, std::memory_order_relaxed);
  }

 private:
  sys::Atomic<std::uint32_t> notifications_{0};
  sys::Atomic<bool> parked_{false};
};

}  // namespace weir::rt
