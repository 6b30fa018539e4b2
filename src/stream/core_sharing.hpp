// Detects that polling threads share a core.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Detects that polling threads share a core: each yield then takes long, and the system moves them
/// apart only slowly. A thread that sleeps gets a free core when it wakes.
class CoreSharing {
 public:
  /// Yields the core. Returns whether several successive yields took so long that the caller should
  /// sleep. Any thread.
  bool yield() noexcept {
    const std::int64_t before = sys::now_ns();
    sys::yield();
    const bool brief = sys::now_ns() - before <= kBriefNs;
    const unsigned long_ones = brief ? 0 : long_ones_.load(std::memory_order_relaxed) + 1;
    long_ones_.store(long_ones % kTooMany, std::memory_order_relaxed);
    return long_ones == kTooMany;
  }

 private:
  static constexpr std::int64_t kBriefNs = 1'000;
  static constexpr unsigned kTooMany = 8;
  sys::Atomic<unsigned> long_ones_{0};
};

}  // namespace weir::rt
