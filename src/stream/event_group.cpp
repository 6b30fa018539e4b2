#include "stream/event_group.hpp"

#include <utility>

#include "stream/context.hpp"

namespace weir::rt {

void EventGroup::watch_for(Watch& watch, const weir_event& event) noexcept {
  watch.group = this;
  watch.deliver = on_end;
  const std::uint64_t id = event.opaque[1];
  open_count_.fetch_add(1, std::memory_order_relaxed);
  if (id != 0 && context_.slot_of(event).watch(id, watch)) return;
  if (id != 0) {
    const FailureLog::Entry entry = context_.failures().find(id);
    note(entry.status, entry.failure);
  }
  open_count_.fetch_sub(1, std::memory_order_relaxed);
}

void EventGroup::fail(Outcome outcome) noexcept {
  const SpinGuard guard(noting_);
  if (outcome_.ok()) outcome_ = std::move(outcome);
}

void EventGroup::on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  EventGroup& group = *static_cast<Watch&>(waiter).group;
  group.note(status, failure);
  group.release();
}

void EventGroup::note(weir_status status, const FailureRef& failure) noexcept {
  if (status == WEIR_STATUS_OK) return;
  if (failure) failure->mark_reported();  // from here on the group's owner reports it
  try {
    fail(failure ? Outcome{failure->status, failure->describe(false)}
                 : Outcome{status, status_name(status)});
  } catch (...) {
    fail(current_exception_outcome(status));
  }
}

}  // namespace weir::rt
