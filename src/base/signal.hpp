// A counter on which one thread sleeps until other threads have delivered enough.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Counts deliveries; the top bit is set while a thread sleeps on the counter.
class Signal {
 public:
  /// Counts a delivery. Afterwards the delivering thread accesses the signal only to wake its
  /// sleeper.
  void deliver() noexcept {
    if (word_.fetch_add(1, std::memory_order_acq_rel) & kSleeper) sys::wake_all(word_);
  }
  std::uint32_t count() const noexcept { return word_.load(std::memory_order_acquire) & ~kSleeper; }
  /// Sleeps until there are `wanted` deliveries or the deadline.
  void sleep(std::uint32_t wanted, std::int64_t deadline_ns) noexcept {
    std::uint32_t word = word_.fetch_or(kSleeper, std::memory_order_acq_rel) | kSleeper;
    while ((word & ~kSleeper) < wanted && sys::now_ns() < deadline_ns) {
      sys::wait(word_, word, deadline_ns);
      word = word_.load(std::memory_order_acquire);
    }
  }

 private:
  static constexpr std::uint32_t kSleeper = 1u << 31;
  sys::Atomic<std::uint32_t> word_{0};
};

}  // namespace weir::rt
