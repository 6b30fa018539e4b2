// Synchronising streams: drains, and those that were given up.
#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"
#include "runtime/runtime.hpp"
#include "runtime/runtime_pins.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kMomentNs = 10'000'000;  ///< for an owner to end a drain it has decided

/// Whether a wait ended by its deadline, and not with an action that failed so.
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
      if (is_late(result) && !abandon(drains)) {  // all are just about to be over
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

/// Adds the drains of a stream whose ends the next synchronise has to tell: those that have taken a
/// failure which was not told, and one for all that is not, unless the last that was given up is.
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
  Drains added(1);  // nothing may fail once the drain is enqueued
  added.front() = {stream.drain(), &stream, false};
  drains.splice(drains.end(), added);
}

/// Lets the drains that are not decided forget nothing. Returns whether any is given up.
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

/// Keeps drains for the next synchronise of their streams.
void Runtime::return_abandoned(Drains& drains) noexcept {
  sys::Lock lock(mutex_);
  while (!drains.empty()) {
    auto& abandoned_drains =
        static_cast<weir_stream*>(drains.front().stream)->registration.abandoned_drains;
    abandoned_drains.splice(abandoned_drains.end(), drains, drains.begin());
  }
}

/// All drains are over: lets streams forget the failures that those which were given up have left.
/// Where something was enqueued since, it takes another drain: then returns false.
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
    drain.abandoned = false;  // it counts as one that has taken the failure, if there was any
  }
  return complete;
}

/// Waits until all that is enqueued in the streams is complete, and lets them keep their failures.
/// Returns false at the time-out.
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
