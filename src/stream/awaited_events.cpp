#include "stream/awaited_events.hpp"

#include "stream/context.hpp"
#include "stream/executor.hpp"

namespace weir::rt {

namespace {

/// Whether the action runs although an event that it waits for was cancelled: actions of task
/// queues do, except syncs.
bool survives_cancel(const Action& action) noexcept {
  return action.kind == ActionKind::compute || action.kind == ActionKind::transfer ||
         action.kind == ActionKind::clear_poison;
}

}  // namespace

void AwaitedEvents::watch(Action& action) noexcept {
  for (EventWait& wait : action.events()) {
    const std::uint64_t id = wait.event.opaque[1];
    if (id == 0) continue;
    if (context_.slot_of(wait.event).watch(id, wait)) {
      ++action.pending;
      if (submitted_ != nullptr) find_submission(wait);
    } else if (!wait.ignores_failure) {
      const FailureLog::Entry entry = context_.failures().find(id);
      if (entry.status == WEIR_STATUS_CANCELLED && survives_cancel(action)) continue;
      action.failure.merge(entry.failure);
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

void AwaitedEvents::deliver(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& wait = static_cast<EventWait&>(waiter);
  const bool passes = status == WEIR_STATUS_CANCELLED && survives_cancel(*wait.action);
  if (!passes) wait.failure = failure;
  wait.action->stream->post(wait);
}

}  // namespace weir::rt
