// Limits the number of threads in a stage.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// A counting semaphore that never blocks and can be closed.
class Permit {
 public:
  static constexpr std::size_t kMost = 1u << 30;

  /// Sets the limit, before any thread enters.
  void limit(std::size_t threads) noexcept { limit_ = static_cast<std::uint32_t>(threads); }
  std::size_t limit() const noexcept { return limit_; }
  bool serial() const noexcept { return limit_ == 1; }
  bool below(std::size_t threads) const noexcept { return limit_ < threads; }

  bool try_enter() noexcept {
    std::uint32_t inside = word_.load(std::memory_order_relaxed);
    while (inside < limit_) {
      if (word_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void leave() noexcept {
    [[maybe_unused]] const std::uint32_t before = word_.fetch_sub(1, std::memory_order_seq_cst);
    assert((before & ~kClosed) > 0);
  }
  /// Makes all later try_enter() fail.
  void close() noexcept { word_.fetch_or(kClosed, std::memory_order_acq_rel); }

  bool free() const noexcept { return word_.load(std::memory_order_seq_cst) < limit_; }
  /// Whether it is closed and no thread is inside.
  bool drained() const noexcept { return word_.load(std::memory_order_acquire) == kClosed; }

 private:
  static constexpr std::uint32_t kClosed = 1u << 31;
  std::uint32_t limit_ = 1;
  sys::Atomic<std::uint32_t> word_{0};
};

}  // namespace weir::rt
