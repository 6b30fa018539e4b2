// The events that the actions of a stream wait for.
#pragma once

#include "core/action.hpp"
#include "stream/submitted_events.hpp"

namespace weir::rt {

class Context;

/// Watches the events that admitted actions wait for. Each watched event arrives at the owner as a
/// message, once, unless unwatch() returned true. Of the owner.
class AwaitedEvents {
 public:
  /// With device ordering `submitted` has the events of the place's device; else it is null.
  AwaitedEvents(Context& context, SubmittedEvents* submitted) noexcept
      : context_(context), submitted_(submitted) {}

  /// Before an action is admitted: adds its incomplete events to `pending`, and the failures of
  /// complete ones to `failure`. With device ordering finds out whether the device can wait for the
  /// event.
  void watch(Action& action) noexcept;
  /// Returns whether the event will not arrive any more.
  bool unwatch(EventWait& wait) noexcept;
  /// The event has arrived, or is no longer watched.
  void remove(EventWait& wait) noexcept {
    if (wait.awaits_submission) submitted_->remove_wait(wait);
  }

  /// EventWait::deliver: posts the wait to the owner. Any thread.
  static void deliver(Waiter& waiter, weir_status status, const FailureRef& failure);

 private:
  void find_submission(EventWait& wait) noexcept;

  Context& context_;
  SubmittedEvents* const submitted_;
};

}  // namespace weir::rt
