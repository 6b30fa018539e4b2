// Waiting for events on threads of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include <weir/event.h>

#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

class Runtime;

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

/// Returns the time until a deadline, as a time-out in nanoseconds.
std::int64_t time_until(std::int64_t deadline_ns) noexcept;

/// The result of a wait for events.
struct WaitResult {
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  std::size_t index = 0;
};

/// Waits on the calling thread until all, or any, of the events are complete. Contract of
/// weir_event_wait(). Throws Error for invalid events, and on threads that must not wait.
WaitResult wait_for_events(Runtime& runtime, std::span<const weir_event> events,
                           weir_wait_mode mode, std::int64_t timeout_ns);

/// Polls, drives virtual time, or sleeps, until the signal has `wanted` deliveries or the deadline
/// has passed. Returns whether it has them.
bool wait_for_signal(Runtime& runtime, Signal& signal, std::uint32_t wanted,
                     std::int64_t deadline_ns) noexcept;

}  // namespace weir::rt
