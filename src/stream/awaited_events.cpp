#include "stream/awaited_events.hpp"

#include "stream/context.hpp"

namespace weir::rt {

void AwaitedEvents::watch(Action& action) noexcept {
  for (EventWait& wait : action.events()) {
    const std::uint64_t id = wait.event.opaque[1];
    if (id == 0) continue;
    if (context_.slot_of(wait.event).watch(id, wait)) {
      ++action.pending;
      if (submitted_ != nullptr) find_submission(wait);
    } else if (!wait.ignores_failure) {
      const FailureLog::Entry entry = context_.failures().find(id);
      if (propagates(action, entry.status)) action.failure.merge(entry.failure);
    }
  }
}

bool AwaitedEvents::unwatch(EventWait& wait) noexcept {
  const std::uint64_t id = wait.event.opaque[1];
  return id != 0 && context_.slot_of(wait.event).unwatch(id, wait);
}

/// Sets the submission id of the event's action, or waits for the submission.
void AwaitedEvents::find_submission(EventWait& wait) noexcept {
  if (wait.ignores_failure) return;  // the device would propagate the failure
  wait.submission_id = submitted_->find(wait.event.opaque[1]);
  if (wait.submission_id == 0) submitted_->add_wait(wait);
}

}  // namespace weir::rt
