// Waiting for events on threads of the program.
#pragma once

#include <cstdint>
#include <span>

#include <weir/event.h>

#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

class Context;

/// Returns the time until a deadline, as a time-out in nanoseconds.
std::int64_t time_until(std::int64_t deadline_ns) noexcept;

/// The result of a wait for events.
struct WaitResult {
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  std::size_t index = 0;

  /// An action may also fail with this status.
  bool timed_out() const noexcept { return status == WEIR_STATUS_TIMEOUT && !failure; }
};

/// Waits on the calling thread until all, or any, of the events are complete. Contract of
/// weir_event_wait(). Throws Error for invalid events, and on threads that must not wait.
WaitResult wait_for_events(Context& context, std::span<const weir_event> events,
                           weir_wait_mode mode, std::int64_t timeout_ns);

/// In virtual time, on a thread of the program that is about to enqueue an action or a task: lets
/// the time pass that this takes the host. Not in a kernel or a callback.
void pass_enqueue_time(Context& context) noexcept;

/// In virtual time, on a thread of the program or of a pipeline: lets time pass. Not in a kernel or
/// a callback.
void pass_time(Context& context, std::int64_t ns) noexcept;

/// Polls, drives virtual time, or sleeps, until the signal has `wanted` deliveries or the deadline
/// has passed. Returns whether it has them.
bool wait_for_signal(Context& context, Signal& signal, std::uint32_t wanted,
                     std::int64_t deadline_ns) noexcept;

}  // namespace weir::rt
