#include "stream/executor.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "stream/context.hpp"
#include "stream/external_action.hpp"
#include "stream/stream_report.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMinPauses = 20, kMaxPauses = 160;  ///< before a poll of the queue
constexpr unsigned kSpinPauses = 400;                  ///< before the owner releases the stream
constexpr std::uint64_t kFewActions = 32;              ///< found by a poll: fewer are not worth it

std::string origin_of(const std::string& stream) noexcept {
  try {
    return "stream '" + stream + "'";
  } catch (...) {
    return {};
  }
}

/// Whether the host orders an action of a stream under device ordering: an external action, or a
/// copy that a device other than that of memory `own` takes part in.
bool is_host_ordered(const Action& action, std::uint16_t own) noexcept {
  if (action.kind != ActionKind::transfer) return action.kind == ActionKind::external;
  const auto elsewhere = [own](const Operand& end) {
    return end.memory != kHostMemory && end.memory != own;
  };
  return elsewhere(action.operands()[0]) || elsewhere(action.operands()[1]);
}

}  // namespace

Executor::Executor(PlaceBase& place, std::uint64_t serial, std::string name,
                   const weir_stream_options& options)
    : QueuedStream(static_cast<std::size_t>(options.priority + 1)),
      place_(place),
      context_(place.domain().context()),
      serial_(serial),
      name_(std::move(name)),
      device_ordered_(place.domain().info().resolves_dependences),
      dispatches_inline_(!device_ordered_ && !place.domain().info().copies_by_worker),
      actions_(context_.actions(), this),
      limit_(context_.max_in_flight(options.max_in_flight), context_.virtual_time()),
      engine_(options.policy, device_ordered_ ? Ordering::device : Ordering::host),
      pauses_per_poll_(kMinPauses),
      awaited_(context_, device_ordered_ ? &place.submitted_events() : nullptr),
      tracer_(context_, place, name_, options.policy) {}

FailureRef make_cancel_reason(const std::string& stream, std::uint64_t serial) noexcept {
  std::string message;
  try {
    message = "the stream was cancelled";
  } catch (...) {
  }
  return FailureRef::make(WEIR_STATUS_CANCELLED, std::move(message), "cancel", origin_of(stream),
                          serial << Action::kSequenceBits);
}

// ---- Ownership ---------------------------------------------------------------------------------

void Executor::schedule() noexcept {
  while (
      dispatches_inline_) {  // the work that needs no worker, on the thread that posted the message
    advance_transfers();
    if (has_call()) break;
    if (release()) return;
  }
  place_.push(*this);
}

void Executor::release_or_reschedule() noexcept {
  assert(!device_ordered_);
  if (dispatches_inline_) {
    schedule();
  } else if (has_call() || (engine_.accepts() && queue_.poll()) || !release()) {
    place_.push(*this);
  }
}

void Executor::post_completed_external(Action& action) noexcept {
  action.message_kind = Message::Kind::finished;
  if (!mailbox_.post(action)) return;
  // Only the thread that uses a device with its own ordering touches the engines of its streams.
  if (device_ordered_) return schedule();
  // A wake-up of a worker costs more than the pass. Copies on the host take long.
  run_owner_pass(/*may_copy=*/dispatches_inline_);
  release_or_reschedule();
}

bool Executor::release() noexcept {
  actions_.flush();
  return mailbox_.release_ownership(queue_, engine_.accepts());
}

// ---- The owner ---------------------------------------------------------------------------------

Action* Executor::advance() noexcept {
  for (;;) {
    // With nothing to do but to admit, one brief action runs after another.
    const bool only_admits = !dispatches_inline_ && engine_.is_quiescent() &&
                             memory_ready_.empty() && !mailbox_.has_messages();
    if (!only_admits) {
      if (dispatches_inline_) {
        advance_transfers();
      } else {
        run_owner_pass(/*may_copy=*/true);
      }
      if (Action* const action = memory_ready_.pop()) {
        if (end_if_not_to_run(*action)) return action;
        continue;
      }
      if (Action* const ready = next_job()) {
        if (acquire(*ready)) return ready;
        continue;
      }
      if (engine_.has_finished()) continue;  // it was ready, but a predecessor has failed meanwhile
      if (dispatches_inline_) return nullptr;
    }
    Action* inline_action = nullptr;
    if (!admit_next(inline_action)) return nullptr;
    if (inline_action != nullptr && acquire(*inline_action)) return inline_action;
  }
}

/// Returns the next action for a worker or, with device ordering, for the device.
Action* Executor::next_job() noexcept {
  while (Action* const transfer = device_ordered_ ? engine_.pop_transfer() : nullptr) {
    if (!transfer->host_ordered) return transfer;
    start_transfer(*transfer);
  }
  return engine_.pop_compute();
}

/// Whether the action may still run after it waited for memory. If it was cancelled, or a
/// predecessor has failed, completes it and returns false.
bool Executor::end_if_not_to_run(Action& action) noexcept {
  if (!cancellation_.covers(action) && !(device_ordered_ && action.failure)) return true;
  context_.release_memory(action);
  complete_unrun(action);
  return false;
}

void Executor::mark_submitted(Action& action, std::uint64_t number,
                              std::vector<std::uint64_t>& waits) {
  std::size_t count = 0;
  engine_.each_awaited_submission(action, [&](std::uint64_t) { ++count; });
  waits.reserve(waits.size() + count);
  engine_.each_awaited_submission(action, [&](std::uint64_t earlier) { waits.push_back(earlier); });
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  engine_.mark_submitted(action, number);
}

bool Executor::spin_for_messages() noexcept {
  const bool accepting = engine_.accepts();
  unsigned before_poll = pauses_per_poll_;
  for (unsigned pauses = kMinPauses; pauses <= kSpinPauses; pauses += kMinPauses) {
    // Less frequent polls leave the cache lines to the threads that write them.
    for (unsigned i = 0; i < kMinPauses; ++i) sys::pause();
    if (mailbox_.has_messages()) return true;
    if (place_.has_streams()) return false;
    if (pauses < before_poll) continue;
    if (accepting && queue_.poll()) {
      // The owner chases the producer, which pays for each poll: more actions should arrive.
      const bool chases = pauses == pauses_per_poll_ && queue_.ready() < kFewActions;
      if (chases) pauses_per_poll_ = std::min(2 * pauses_per_poll_, kMaxPauses);
      return true;
    }
    pauses_per_poll_ = kMinPauses;
    before_poll = pauses + kMinPauses;
  }
  return false;
}

/// Reads messages, starts external actions and, with `may_copy`, transfers, and retires completed
/// actions.
void Executor::run_owner_pass(bool may_copy) noexcept {
  assert(mailbox_.is_owned());
  do {
    Message* list = mailbox_.has_messages() ? mailbox_.take_messages() : nullptr;
    while (list != nullptr) {
      Message& message = *std::exchange(list, list->next_message);
      take_message(message);
    }
    while (Action* const external = engine_.pop_external()) start_transfer(*external);
    while (may_copy && !device_ordered_) {
      Action* const transfer = engine_.pop_transfer();
      if (transfer == nullptr) break;
      start_transfer(*transfer);
    }
    while (Action* const finished = engine_.pop_finished()) retire(*finished);
  } while (mailbox_.has_messages());
}

/// The same, and admits all enqueued actions, so that links are busy while workers compute.
void Executor::advance_transfers() noexcept {
  Action* inline_action = nullptr;
  do {
    run_owner_pass(/*may_copy=*/true);
    queue_.poll();
  } while (admit_next(inline_action));
}

bool Executor::admit_next(Action*& inline_action) noexcept {
  assert(mailbox_.is_owned());
  if (!engine_.accepts()) return false;
  Action* const action = queue_.pop();
  if (action == nullptr) return false;
  if (action->traits.traced) [[unlikely]]
    tracer_.note_admission(*action);
  if (cancellation_.before_admission(*action)) [[unlikely]] {
    action->status = WEIR_STATUS_CANCELLED;
    action->failure = cancellation_.reason();
  } else if (action->event_count > 0) {
    awaited_.watch(*action);
  }
  if (device_ordered_) {
    action->host_ordered = is_host_ordered(*action, domain().residency().memory());
  }
  const bool may_run_inline = action->kind == ActionKind::compute && !dispatches_inline_ &&
                              !device_ordered_ && action->event_count == 0 &&
                              (place_.has_single_worker() || place_.keeps_stream_for(*action));
  if (engine_.admit(*action, may_run_inline)) inline_action = action;
  return true;
}

void Executor::deliver_event(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& wait = static_cast<EventWait&>(waiter);
  if (AwaitedEvents::propagates(*wait.action, status)) wait.failure = failure;
  wait.action->stream->post(wait);
}

void Executor::mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept {
  engine_.mark_event_submitted(wait, number);
  if (mailbox_.try_own_even_if_blocked()) schedule();
}

void Executor::take_message(Message& message) noexcept {
  switch (message.message_kind) {
    case Message::Kind::finished: finish(static_cast<Action&>(message)); break;
    case Message::Kind::event: {
      auto& wait = static_cast<EventWait&>(message);
      awaited_.remove(wait);
      engine_.satisfy(wait, wait.failure);
      break;
    }
    case Message::Kind::retry: {
      auto& action = static_cast<Action&>(message);
      if (cancellation_.covers(action)) {
        context_.cancel_memory_request(action);
        complete_unrun(action);
      } else if (action.kind != ActionKind::compute && !(device_ordered_ && !action.host_ordered)) {
        start_transfer(action);
      } else if (acquire(action)) {
        memory_ready_.push(action);
      }
      break;
    }
    case Message::Kind::cancel: {
      const std::unique_ptr<CancelMessage> owned(&static_cast<CancelMessage&>(message));
      cancellation_.note(*owned);
      engine_.cancel(owned->reason, owned->until);
      engine_.each_admitted([this](Action& action) {
        // The worker that runs a started action writes its status.
        if (action.started || action.status != WEIR_STATUS_CANCELLED) return;
        for (EventWait& wait : action.events()) {
          if (!awaited_.unwatch(wait)) continue;
          awaited_.remove(wait);
          engine_.satisfy(wait, {});
        }
      });
      break;
    }
    case Message::Kind::report:
      answer(static_cast<ReportMessage&>(message), engine_, context_);
      break;
    case Message::Kind::room:
      limit_.add(static_cast<InFlightLimit::Request&>(message));
      limit_.grant(progress_.completed());
      break;
  }
}

/// Completes an action without memory, because a predecessor has failed or it was cancelled. A
/// cancelled call of a queue waits for its predecessors on the device, because its successors must
/// inherit their failures.
void Executor::complete_unrun(Action& action) noexcept {
  if (action.pending > 0 && cancellation_.below_watermark(action)) {
    engine_.requeue_host_ordered(action);
    return;
  }
  if (!action.failure) {
    if (!cancellation_.reason()) cancellation_.set_reason(make_cancel_reason(name_, serial_));
    action.status = WEIR_STATUS_CANCELLED;
    action.failure = cancellation_.reason();
  }
  if (engine_.finish(action)) retire(action);
}

void Executor::finish(Action& action) noexcept {
  assert(mailbox_.is_owned());
  if (action.traits.needs_memory) context_.release_memory(action);
  if (engine_.finish(action)) retire(action);
}

/// Acquires what an action needs to start. Returns false if it waits for memory, or was completed
/// because it cannot have memory or is a call that was cancelled.
bool Executor::acquire(Action& action) noexcept {
  if (cancellation_.below_watermark(action)) [[unlikely]] {
    complete_unrun(action);
    return false;
  }
  if (action.traits.traced) [[unlikely]]
    tracer_.note_ready(action);
  if (!action.traits.needs_memory) return true;
  Outcome why;
  switch (context_.acquire_memory(action, why)) {
    case Residency::Grant::ready: return true;
    case Residency::Grant::waiting: return false;
    case Residency::Grant::refused: break;
  }
  set_failure(action, std::move(why));
  if (engine_.finish(action)) retire(action);
  return false;
}

void Executor::start_transfer(Action& action) noexcept {
  if (!acquire(action)) return;
  if (action.kind == ActionKind::external) {
    Outcome why = call_external(context_, action);
    if (why.ok()) return;
    set_failure(action, std::move(why));
    return finish(action);
  }
  domain().device().copy({.source = end_of_copy(context_, action, 0),
                          .target = end_of_copy(context_, action, 1),
                          .sink = this,
                          .token = &action});
}

void complete_external(Context& context, const weir_event& event, weir_status status,
                       const char* message) {
  context.check_event(event);
  if (status < WEIR_STATUS_OK || status > WEIR_STATUS_INTERNAL || status == WEIR_STATUS_POISONED) {
    fail_argument("an external action cannot complete with status {}", static_cast<int>(status));
  }
  const std::uint64_t id = event.opaque[1];
  const bool is_action = id != 0 && (event.opaque[0] & Ticket::kMark) == 0;
  Action* const action = is_action ? &context.action_of(event) : nullptr;
  if (action == nullptr ||
      !ExternalCall::change_state(*action, id, ExternalCall::State::in_progress,
                                  ExternalCall::State::completed)) {
    fail_argument(
        "no external action with this event is in progress: it is completed once, after "
        "its function has been called");
  }
  if (action->traits.traced) action->times().ended = context.now_ns();
  Executor& stream = *action->stream;
  if (status != WEIR_STATUS_OK) {
    stream.set_failure(*action, failed_outcome(status, message != nullptr ? message : ""));
  }
  stream.post_completed_external(*action);
}

CopyEnd end_of_copy(const Context& context, const Action& action, std::size_t end) noexcept {
  const Operand& operand = action.operands()[end];
  return {operand.memory == kHostMemory ? nullptr : &context.device_of(operand.memory),
          operand.buffer->address_in(operand.memory), operand.region()};
}

void Executor::copied(void* token, Outcome outcome, std::int64_t started_ns,
                      std::int64_t ended_ns) noexcept {
  auto& action = *static_cast<Action*>(token);
  if (action.traits.traced) {
    action.times().started = started_ns;
    action.times().ended = ended_ns;
  }
  if (!outcome.ok()) set_failure(action, std::move(outcome));
  post_back(action, Message::Kind::finished);
}

void Executor::set_failure(Action& action, Outcome outcome) const noexcept {
  action.status = outcome.status;
  std::string label;
  try {
    label = action.label();
  } catch (...) {
    label.clear();
  }
  action.failure = FailureRef::make(outcome.status, std::move(outcome.message), std::move(label),
                                    origin_of(name_), action.id());
}

void Executor::retire(Action& action) noexcept {
  counters_.add_transfer(action);
  if (action.traits.traced) [[unlikely]]
    tracer_.note_end(action);
  if (action.kind == ActionKind::drain) [[unlikely]] {
    if (action.fate == DrainFate::reported) progress_.set_failed(false);
    counters_.add_drained();
  } else if (action.status != WEIR_STATUS_OK) [[unlikely]] {
    counters_.add_failed();
    if (action.status != WEIR_STATUS_POISONED) unreported_.add(action.failure);
    if (action.status != WEIR_STATUS_CANCELLED && action.kind != ActionKind::marker) {
      progress_.set_failed(true);
    }
  }
  Waiter* waiters = nullptr;
  bool kept = false;
  if (action.traits.has_event) {
    if (action.failure) kept = context_.failures().add(action);
    waiters = action.event.close(action.id(), action.waiters);
  }
  // A thread that reads the count sees the events as complete; a waiter that is notified sees the
  // count.
  progress_.complete();
  if (limit_.is_awaited()) [[unlikely]]
    limit_.grant(progress_.completed());
  while (waiters != nullptr) {
    Waiter& waiter = *std::exchange(waiters, waiters->next);
    waiter.deliver(waiter, action.status, action.failure);
  }
  if (kept) [[unlikely]] {
    action.release_waits();
    return;
  }
  action.recycle();
  actions_.give(action);
}

}  // namespace weir::rt
