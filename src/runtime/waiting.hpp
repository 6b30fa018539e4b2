// Threads of the program that wait for events.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include <weir/event.h>

#include "base/signal.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

class Runtime;

/// How a wait for events ended.
struct WaitResult {
  weir_status status = WEIR_STATUS_OK;
  FailureRef failure;
  std::size_t index = 0;
};

/// Waits on the calling thread until all, or any, of the events are complete. Contract of
/// weir_event_wait(). Throws Error for events that are none, and for threads that must not wait.
WaitResult wait_for_events(Runtime& runtime, std::span<const weir_event> events,
                           weir_wait_mode mode, std::int64_t timeout_ns);

/// Polls and assists, drives virtual time, or sleeps, until there are enough deliveries or the
/// deadline. Returns whether there are enough.
bool wait_for_signal(Runtime& runtime, Signal& signal, std::uint32_t wanted,
                     std::int64_t deadline_ns) noexcept;

}  // namespace weir::rt
