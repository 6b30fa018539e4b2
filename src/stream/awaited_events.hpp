// The events that the actions of a stream wait for.
#pragma once

#include <array>
#include <cstdint>

#include "core/action.hpp"

namespace weir::rt {

class Context;

/// Maps events to submission ids for a place with device ordering, so that streams wait for each
/// other on the device. Only the thread that uses the device calls it. The host waits for an event
/// that was dropped from the table.
class SubmittedEvents {
 public:
  /// Records that an action was submitted. Returns the waits for its submission, linked by
  /// `next_pending_submission`.
  EventWait* note(std::uint64_t id, std::uint64_t number) noexcept {
    submissions_[bucket_of(id)] = {id, number};
    EventWait* found = nullptr;
    for (EventWait** link = &waits_[bucket_of(id)]; *link != nullptr;) {
      EventWait& wait = **link;
      if (wait.event.opaque[1] != id) {
        link = &wait.next_pending_submission;
        continue;
      }
      *link = wait.next_pending_submission;
      wait.awaits_submission = false;
      wait.next_pending_submission = found;
      found = &wait;
    }
    return found;
  }

  /// Returns the submission id of an incomplete event, 0: unknown.
  std::uint64_t find(std::uint64_t id) const noexcept {
    const Entry& entry = submissions_[bucket_of(id)];
    return entry.id == id ? entry.number : 0;
  }

  /// Adds a wait for a submission, which note() will return.
  void add_wait(EventWait& wait) noexcept {
    EventWait*& first = waits_[bucket_of(wait.event.opaque[1])];
    wait.next_pending_submission = first;
    wait.awaits_submission = true;
    first = &wait;
  }
  /// Removes a wait that note() has not returned.
  void remove_wait(EventWait& wait) noexcept {
    EventWait** link = &waits_[bucket_of(wait.event.opaque[1])];
    while (*link != &wait) link = &(*link)->next_pending_submission;
    *link = wait.next_pending_submission;
    wait.awaits_submission = false;
  }

 private:
  struct Entry {
    std::uint64_t id = 0, number = 0;
  };
  static constexpr std::size_t kEntries = 1024;

  static std::size_t bucket_of(std::uint64_t id) noexcept {
    return (id * 0x9E3779B97F4A7C15u) >> 54;
  }

  std::array<Entry, kEntries> submissions_;
  std::array<EventWait*, kEntries> waits_{};
};

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

  /// Whether an event that ended with this status passes its failure to the action. Those of task
  /// queues, except syncs, run although the event was cancelled. Any thread.
  static bool propagates(const Action& action, weir_status status) noexcept {
    return status != WEIR_STATUS_CANCELLED ||
           (action.kind != ActionKind::compute && action.kind != ActionKind::transfer &&
            action.kind != ActionKind::clear_poison);
  }

 private:
  void find_submission(EventWait& wait) noexcept;

  Context& context_;
  SubmittedEvents* const submitted_;
};

}  // namespace weir::rt
