// Synchronises streams: drains, and abandoned drains.
#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"
#include "runtime/runtime.hpp"
#include "runtime/runtime_pins.hpp"

namespace weir::rt {

namespace {

/// Enough for an owner to end a drain whose fate is decided.
constexpr std::int64_t kMomentNs = 10'000'000;

/// Whether a wait timed out. An action may also fail with this status.
bool is_late(const WaitResult& result) noexcept {
  return result.status == WEIR_STATUS_TIMEOUT && !result.failure;
}

std::vector<weir_event> events_of(const std::list<Stream::Drain>& drains) {
  std::vector<weir_event> events;
  events.reserve(drains.size());
  for (const Stream::Drain& drain : drains) events.push_back(drain.event);
  return events;
}

}  // namespace

WaitResult Runtime::synchronize(Stream& stream, std::int64_t timeout_ns) {
  if (NoWaitScope::active()) {
    fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise stream '{}'", stream.name());
  }
  return drain({static_cast<weir_stream*>(&stream)}, timeout_ns);
}

WaitResult Runtime::synchronize_all(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise");
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  const auto left = [&] { return time_until(deadline); };
  const PinnedQueues queues(*this);
  for (weir_queue* queue : queues.list()) {
    WaitResult result = queue->synchronize(left());
    if (is_late(result)) return result;
    const sys::Lock lock(mutex_);
    if (unreported_failure_.status == WEIR_STATUS_OK) unreported_failure_ = std::move(result);
  }
  const PinnedStreams all(*this);
  WaitResult result = drain(all.list(), left());
  if (is_late(result)) return result;
  const sys::Lock lock(mutex_);
  WaitResult first = std::exchange(unreported_failure_, {});
  return first.status == WEIR_STATUS_OK ? result : first;
}

WaitResult Runtime::drain(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns) {
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  Drains drains;
  try {
    for (weir_stream* stream : streams) add_drains_of(*stream, drains);
    for (;;) {
      const std::vector<weir_event> events = events_of(drains);
      WaitResult result = wait_for_events(*this, events, WEIR_WAIT_MODE_ALL, time_until(deadline));
      if (is_late(result) && !abandon(drains)) {  // all drains are about to complete
        result = wait_for_events(*this, events, WEIR_WAIT_MODE_ALL, kMomentNs);
      }
      if (is_late(result)) {
        return_abandoned(drains);
        return result;
      }
      if (!forget_abandoned(drains)) continue;
      for (const Stream::Drain& drain : drains) {
        failures_.remove(drain.event.opaque[1]);
        drain.stream->unreported().forget_up_to(drain.event.opaque[1]);
      }
      return result;
    }
  } catch (...) {
    abandon(drains);
    return_abandoned(drains);
    throw;
  }
}

/// Adds the drains of a stream that the next synchronise must report: those that have taken a
/// failure that was not reported, and one for everything enqueued, unless the last abandoned drain
/// covers that.
void Runtime::add_drains_of(weir_stream& stream, Drains& drains) {
  Drains own;
  {
    sys::Lock lock(mutex_);
    own.splice(own.end(), stream.registration.abandoned_drains);
  }
  own.remove_if([&](const Stream::Drain& drain) {
    if (!drain.abandoned || stream.is_last(drain.event)) return false;
    failures_.remove(drain.event.opaque[1]);
    return true;
  });
  const bool asked = std::any_of(own.begin(), own.end(),
                                 [](const Stream::Drain& drain) { return drain.abandoned; });
  drains.splice(drains.end(), own);
  if (asked || stream.completed_without_failure()) return;
  Drains added(1);  // nothing may throw once the drain is enqueued
  added.front() = {stream.drain(), &stream, false};
  drains.splice(drains.end(), added);
}

/// Abandons the drains whose fate is open, so that they keep the failures of their streams. Returns
/// whether any drain is abandoned.
bool Runtime::abandon(Drains& drains) noexcept {
  bool any = false;
  for (Stream::Drain& drain : drains) {
    drain.abandoned =
        drain.abandoned ||
        action_of(drain.event).decide_fate(drain.event.opaque[1], DrainFate::abandoned);
    any = any || drain.abandoned;
  }
  return any;
}

/// Stores drains for the next synchronise of their streams.
void Runtime::return_abandoned(Drains& drains) noexcept {
  sys::Lock lock(mutex_);
  while (!drains.empty()) {
    auto& abandoned_drains =
        static_cast<weir_stream*>(drains.front().stream)->registration.abandoned_drains;
    abandoned_drains.splice(abandoned_drains.end(), drains, drains.begin());
  }
}

/// Called when all drains are complete. Makes streams forget the failures that abandoned drains
/// have kept. A stream with newer actions needs another drain: the function enqueues it and returns
/// false.
bool Runtime::forget_abandoned(Drains& drains) {
  bool complete = true;
  for (Stream::Drain& drain : drains) {
    if (!drain.abandoned) continue;
    if (failures_.find(drain.event.opaque[1]).status != WEIR_STATUS_OK &&
        !drain.stream->forget_failure_of(drain.event)) {
      const std::uint64_t left = drain.event.opaque[1];
      drain.event = drain.stream->drain();
      failures_.remove(left);
      complete = false;
    }
    drain.abandoned = false;  // now like a drain that has taken the failure, if there was one
  }
  return complete;
}

/// Waits until everything in the streams is complete. The streams keep their failures. Returns
/// false at the time-out.
bool Runtime::await_end(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns) {
  std::vector<weir_event> ends;
  ends.reserve(streams.size());
  for (weir_stream* stream : streams) {
    if (!stream->is_complete()) ends.push_back(stream->drain(DrainFate::abandoned));
  }
  const WaitResult result = wait_for_events(*this, ends, WEIR_WAIT_MODE_ALL, timeout_ns);
  for (const weir_event& end : ends) failures_.remove(end.opaque[1]);
  return !is_late(result);
}

}  // namespace weir::rt
