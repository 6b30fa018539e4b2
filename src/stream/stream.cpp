#include "stream/stream.hpp"

#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/thread_role.hpp"
#include "stream/context.hpp"
#include "stream/external_action.hpp"
#include "stream/stream_report.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

namespace {

constexpr std::uint64_t kMostActions = (std::uint64_t{1} << Action::kSequenceBits) - 1;

}  // namespace

Stream::Stream(PlaceBase& place, std::uint64_t serial, std::string name,
               const weir_stream_options& options)
    : Executor(place, serial, std::move(name), options),
      builder_(context(), domain(), Executor::name(), serial) {}

void Stream::post_cancel(std::uint64_t until) {
  auto message = std::make_unique<CancelMessage>();
  message->message_kind = Message::Kind::cancel;
  message->until = until;
  message->reason = make_cancel_reason(name(), serial());
  post(*message.release());
}

void Stream::request_report(std::shared_ptr<StreamReport> report) {
  auto message = std::make_unique<ReportMessage>();
  message->message_kind = Message::Kind::report;
  message->report = std::move(report);
  post(*message.release());
}

/// At the limit, waits until a part of the actions in flight is complete. Does not wait in a kernel
/// or a callback: other actions may wait for that one.
void Stream::make_room() {
  pass_enqueue_time(context());
  for (;;) {
    const std::uint64_t completed = progress_.completed();
    InFlightLimit::Request request;
    if (limit_.check(enqueued(), completed, request) || NoWaitScope::active()) return;
    post(request);
    wait_for_signal(context(), request.signal, 1, sys::kNever);
  }
}

template <class Fill>
weir_event Stream::enqueue(ActionKind kind, bool with_event, Fill&& fill,
                           std::uint64_t only_after) {
  weir_event event = WEIR_EVENT_INIT;
  bool idle = false;
  {
    ActionQueue::ProducerLock producer_lock(queue_);
    if (producer_lock.count() != only_after && only_after != kAny) [[unlikely]]
      return event;
    if (producer_lock.count() == kMostActions) [[unlikely]] {
      fail(WEIR_STATUS_UNAVAILABLE, "stream '{}' has had {} actions: go on with a new one", name(),
           kMostActions);
    }
    producer_lock.reserve();
    Action& action = actions_.take();
    action.kind = kind;
    action.traits = {.traced = context().recorder().on(), .has_event = with_event};
    try {
      fill(action);
      if (action.traits.traced || action.traits.timed) [[unlikely]]
        action.reserve_record();
      if (!builder_.record(action)) [[unlikely]] {
        action.recycle();
        actions_.undo_take(action);
        return event;
      }
    } catch (...) {
      action.recycle();
      actions_.undo_take(action);
      throw;
    }
    const std::uint64_t id = serial() << Action::kSequenceBits | (producer_lock.count() + 1);
    action.event.open(id);
    if (action.traits.traced) [[unlikely]] {
      action.times() = {};
      action.times().enqueued = context().now_ns();
    }
    if (with_event) event = context().event_of(action, id);
    idle = producer_lock.push(action);
  }
  if (idle && mailbox_.try_own()) schedule();
  return event;
}

bool Stream::begin_recording(ActionRecorder& recorder) {
  const ActionQueue::ProducerLock producer_lock(queue_);
  return builder_.begin_recording(recorder);
}

void Stream::end_recording() {
  const ActionQueue::ProducerLock producer_lock(queue_);
  builder_.end_recording();
}

bool Stream::is_recorded() {
  const ActionQueue::ProducerLock producer_lock(queue_);
  return builder_.is_recorded();
}

weir_event Stream::compute(const weir_compute& compute, bool with_event, int priority) {
  return enqueue(ActionKind::compute, with_event, [&](Action& action) {
    action.traits.priority_class =
        static_cast<unsigned>(ActionTraits::kDefaultPriorityClass - priority) & 3u;
    builder_.fill_compute(action, compute, {});
  });
}

weir_event Stream::compute_after(const weir_compute& compute, std::span<const weir_event> events,
                                 ActionWatcher& watcher, std::uint64_t number, bool timed) {
  return enqueue(ActionKind::compute, true, [&](Action& action) {
    builder_.fill_compute(action, compute, events);
    action.traits.timed = timed;
    action.reserve_record();
    action.record().task = number;
    watcher.action = &action;
    watcher.next = nullptr;
    action.waiters = &watcher;  // no other thread has the event yet
  });
}

weir_event Stream::transfer(const weir_transfer& transfer, bool with_event) {
  return enqueue(ActionKind::transfer, with_event,
                 [&](Action& action) { builder_.fill_transfer(action, transfer, {}); });
}

weir_event Stream::overwrite_after(const weir_transfer& transfer,
                                   std::span<const weir_event> events,
                                   std::size_t ignoring_failure) {
  return enqueue(ActionKind::transfer, true, [&](Action& action) {
    builder_.fill_transfer(action, transfer, events);
    for (EventWait& wait : action.events().last(ignoring_failure)) wait.ignores_failure = true;
    action.traits.clears_poison = true;
  });
}

weir_event Stream::clear_poison_after(const weir_operand& operand,
                                      std::span<const weir_event> events) {
  weir_sync sync = WEIR_SYNC_INIT;
  sync.events = events.data();
  sync.event_count = events.size();
  sync.operands = &operand;
  sync.operand_count = 1;
  sync.scope = WEIR_SYNC_SCOPE_OPERANDS;
  return enqueue(ActionKind::clear_poison, true,
                 [&](Action& action) { builder_.fill_sync(action, sync, enqueued()); });
}

weir_event Stream::clear_poison_on_host(const weir_operand& given) {
  return enqueue(ActionKind::clear_poison, true,
                 [&](Action& action) { builder_.fill_operand(action, given, true); });
}

weir_event Stream::fence(const weir_operand& given) {
  const weir_event event = enqueue(ActionKind::sync, true, [&](Action& action) {
    builder_.fill_operand(action, given, false);
    action.traits.non_ordering = true;
  });
  counters_.add_non_ordering();
  return event;
}

weir_event Stream::sync(const weir_sync& sync, bool with_event) {
  const ActionKind kind = sync.scope == WEIR_SYNC_SCOPE_OPERANDS  ? ActionKind::sync
                          : sync.scope == WEIR_SYNC_SCOPE_NOTHING ? ActionKind::marker
                                                                  : ActionKind::barrier;
  return enqueue(kind, with_event,
                 [&](Action& action) { builder_.fill_sync(action, sync, enqueued()); });
}

weir_event Stream::external(const weir_external& external, bool on_host) {
  std::unique_ptr<PayloadRelease> release;
  if (external.release != nullptr) {
    release = std::make_unique<PayloadRelease>(context().listeners(), external);
  }
  const weir_event event = enqueue(ActionKind::external, true, [&](Action& action) {
    builder_.fill_external(action, external, on_host);
  });
  if (release) context().listen(event, std::move(release));
  return event;
}

weir_event Stream::drain(DrainFate fate) {
  counters_.add_drain();
  return enqueue(ActionKind::drain, true, [fate](Action& action) {
    action.reserve(0, 0, 0);
    action.fate = fate;
  });
}

bool Stream::forget_failure_of(const weir_event& drain) {
  bool enqueued = false;
  counters_.add_drain();
  const auto fill = [&](Action& action) {
    action.reserve(0, 0, 0);
    action.fate = DrainFate::reported;
    enqueued = true;
  };
  try {
    enqueue(ActionKind::drain, false, fill, position_of(drain));
  } catch (...) {
    counters_.remove_drain();
    throw;
  }
  if (!enqueued) counters_.remove_drain();
  return enqueued;
}

weir_event Stream::mark() {
  const weir_event event =
      enqueue(ActionKind::marker, true, [](Action& action) { action.reserve(0, 0, 0); });
  counters_.add_non_ordering();
  return event;
}

}  // namespace weir::rt
