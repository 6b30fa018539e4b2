#include "runtime/stream.hpp"

#include <algorithm>
#include <utility>

#include "runtime/context.hpp"
#include "runtime/history.hpp"

namespace weir::rt {

namespace {

constexpr int kSpinPolls = 20;
constexpr int kPausesPerPoll = 20;

/// Whether the action runs although an event that it waits for was cancelled: actions of task
/// queues do, except syncs.
bool survives_cancel(const Action& action) noexcept {
  return action.kind == ActionKind::compute || action.kind == ActionKind::transfer ||
         action.kind == ActionKind::clear_poison;
}

}  // namespace

/// Asks the owner to cancel what was enqueued before the message.
struct Stream::CancelMessage : Message {
  std::uint64_t until = 0;
  FailureRef reason;
};

Stream::Stream(Place& place, std::uint64_t serial, std::string name,
               const weir_stream_options& options)
    : place_(place),
      context_(place.domain().context()),
      serial_(serial),
      name_(std::move(name)),
      policy_(options.policy),
      priority_(static_cast<std::size_t>(options.priority + 1)),
      max_in_flight_(context_.max_in_flight(options.max_in_flight)),
      device_ordered_(place.domain().info().resolves_dependences),
      dispatches_inline_(!device_ordered_ && !place.domain().info().copies_by_worker),
      trace_index_(context_.recorder().add_stream(name_)),
      actions_(context_.actions(), this),
      engine_(options.policy, device_ordered_ ? Ordering::device : Ordering::host) {}

Stream::~Stream() = default;

void Stream::cancel() { post_cancel(enqueued()); }
void Stream::cancel_permanently() { post_cancel(UINT64_MAX); }

void Stream::post_cancel(std::uint64_t until) {
  auto message = std::make_unique<CancelMessage>();
  message->message_kind = Message::Kind::cancel;
  message->until = until;
  message->reason = make_cancel_reason();
  post(*message.release());
}

/// Without memory the message is empty.
FailureRef Stream::make_cancel_reason() const noexcept {
  std::string message;
  try {
    message = "the stream was cancelled";
  } catch (...) {
  }
  return FailureRef::make(WEIR_STATUS_CANCELLED, std::move(message), "cancel", describe_origin(),
                          serial_ << Action::kSequenceBits);
}

// ---- Ownership ---------------------------------------------------------------------------------

void Stream::post(Message& message) noexcept {
  if (mailbox_.post(message)) schedule();
}

void Stream::schedule() noexcept {
  if (dispatches_inline_) {
    dispatch_inline();
  } else {
    place_.push(*this);
  }
}

/// Does the work that needs no worker, on the thread that posted the message.
void Stream::dispatch_inline() noexcept {
  do {
    advance_transfers();
    if (has_call()) {
      place_.push(*this);
      return;
    }
  } while (!release());
}

void Stream::release_or_reschedule() noexcept {
  if (dispatches_inline_) {
    dispatch_inline();
  } else if (has_more() || !release()) {
    place_.push(*this);
  }
}

bool Stream::release() noexcept {
  actions_.flush();
  return mailbox_.release_ownership(queue_, engine_.accepts());
}

// ---- The owner ---------------------------------------------------------------------------------

Action* Stream::advance() noexcept {
  for (;;) {
    if (!only_admits()) {
      if (dispatches_inline_) {
        advance_transfers();
      } else {
        run_owner_pass();
      }
      if (Action* const action = memory_ready_.pop()) {
        if (end_if_not_to_run(*action)) return action;
        continue;
      }
      if (Action* const ready = next_job()) {
        if (!end_if_cancelled(*ready) && acquire(*ready)) return ready;
        continue;
      }
      if (engine_.has_finished()) continue;  // it was ready, but a predecessor has failed meanwhile
      if (dispatches_inline_) return nullptr;
    }
    Action* inline_action = nullptr;
    if (!admit_next(inline_action)) return nullptr;
    if (inline_action != nullptr) {
      if (!end_if_cancelled(*inline_action) && acquire(*inline_action)) return inline_action;
    }
  }
}

/// Whether there are no messages and no earlier work: the fast path of one brief action after
/// another.
bool Stream::only_admits() const noexcept {
  return !dispatches_inline_ && engine_.is_quiescent() && memory_ready_.empty() &&
         !mailbox_.has_messages();
}

/// Returns the next action for a worker or, with device ordering, for the device.
Action* Stream::next_job() noexcept {
  while (Action* const transfer = device_ordered_ ? engine_.pop_transfer() : nullptr) {
    if (!transfer->host_ordered) return transfer;
    start_transfer(*transfer);
  }
  return engine_.pop_compute();
}

/// Whether the action may still run after it waited for memory. If it was cancelled, or a
/// predecessor has failed, completes it and returns false.
bool Stream::end_if_not_to_run(Action& action) noexcept {
  if (!is_cancelled(action) && !(device_ordered_ && action.failure)) return true;
  release_memory(action);
  complete_unrun(action);
  return false;
}

void Stream::mark_submitted(Action& action, std::uint64_t number,
                            std::vector<std::uint64_t>& waits) {
  std::size_t count = 0;
  engine_.each_awaited_submission(action, [&](std::uint64_t) { ++count; });
  waits.reserve(waits.size() + count);
  engine_.each_awaited_submission(action, [&](std::uint64_t earlier) { waits.push_back(earlier); });
  std::sort(waits.begin(), waits.end());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  engine_.mark_submitted(action, number);
}

bool Stream::spin_for_messages() noexcept {
  const bool accepting = engine_.accepts();
  for (int look = 0; look < kSpinPolls; ++look) {
    // Less frequent polls leave the cache lines to the threads that write them.
    for (int i = 0; i < kPausesPerPoll; ++i) sys::pause();
    if (mailbox_.has_messages()) return true;
    if (accepting && queue_.poll()) return true;
  }
  return false;
}

bool Stream::has_more() noexcept {
  return has_call() || (!dispatches_inline_ && engine_.accepts() && queue_.poll());
}

/// Reads messages, starts transfers and retires completed actions.
void Stream::run_owner_pass() noexcept {
  do {
    if (mailbox_.has_messages()) read_messages();
    while (Action* const transfer = device_ordered_ ? nullptr : engine_.pop_transfer()) {
      start_transfer(*transfer);
    }
    while (Action* const over = engine_.pop_finished()) retire(*over);
  } while (mailbox_.has_messages());
}

/// The same, and admits all enqueued actions, so that links are busy while workers compute.
void Stream::advance_transfers() noexcept {
  Action* inline_action = nullptr;
  do {
    run_owner_pass();
    queue_.poll();
  } while (admit_next(inline_action));
}

bool Stream::admit_next(Action*& inline_action) noexcept {
  if (!engine_.accepts()) return false;
  Action* const action = queue_.pop();
  if (action == nullptr) return false;
  if (action->traced) [[unlikely]]
    trace_admission(*action);
  if (action->sequence() <= cancel_until_ && action->kind != ActionKind::drain) [[unlikely]] {
    action->status = WEIR_STATUS_CANCELLED;
    action->failure = cancel_reason_;
  } else if (action->event_count > 0) {
    watch_events(*action);
  }
  if (device_ordered_) action->host_ordered = is_host_ordered(*action);
  const bool may_run_alone = action->kind == ActionKind::compute && !dispatches_inline_ &&
                             !device_ordered_ && action->event_count == 0 &&
                             (place_.has_single_worker() || place_.keeps_stream_for(*action));
  if (engine_.admit(*action, may_run_alone)) inline_action = action;
  return true;
}

/// Whether the action is a copy that another device takes part in.
bool Stream::is_host_ordered(const Action& action) const noexcept {
  if (action.kind != ActionKind::transfer) return false;
  const std::uint16_t own = domain().residency().memory();
  const auto elsewhere = [&](const Operand& end) {
    return end.memory != kHostMemory && end.memory != own;
  };
  return elsewhere(action.operands()[0]) || elsewhere(action.operands()[1]);
}

void Stream::watch_events(Action& action) noexcept {
  for (EventWait& wait : action.events()) {
    const std::uint64_t id = wait.event.opaque[1];
    if (id == 0) continue;
    if (context_.slot_of(wait.event).watch(id, wait)) {
      ++action.pending;
      if (device_ordered_) find_submission(wait);
    } else if (!wait.ignores_failure) {
      const FailureLog::Entry entry = context_.failures().find(id);
      if (entry.status == WEIR_STATUS_CANCELLED && survives_cancel(action)) continue;
      action.failure.merge(entry.failure);
    }
  }
}

/// Whether the device can wait for the event: sets the submission id of its action, or waits for
/// the submission.
void Stream::find_submission(EventWait& wait) noexcept {
  if (wait.ignores_failure) return;  // the device would propagate the failure
  SubmittedEvents& issued = place_.submitted_events();
  wait.submission_id = issued.find(wait.event.opaque[1]);
  if (wait.submission_id == 0) issued.add_wait(wait);
}

void Stream::mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept {
  engine_.mark_event_submitted(wait, number);
  if (mailbox_.try_own_even_if_blocked()) schedule();
}

void Stream::satisfy(EventWait& wait, const FailureRef& failure) noexcept {
  if (wait.awaits_submission) place_.submitted_events().remove_wait(wait);
  engine_.satisfy(wait, failure);
}

void Stream::deliver_event(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& wait = static_cast<EventWait&>(waiter);
  const bool passes = status == WEIR_STATUS_CANCELLED && survives_cancel(*wait.action);
  if (!passes) wait.failure = failure;
  static_cast<Stream*>(wait.action->stream)->post(wait);
}

void Stream::read_messages() noexcept {
  Message* list = mailbox_.take_messages();
  while (list != nullptr) {
    Message& message = *std::exchange(list, list->next_message);
    take_message(message);
  }
}

void Stream::take_message(Message& message) noexcept {
  switch (message.message_kind) {
    case Message::Kind::finished: finish(static_cast<Action&>(message)); break;
    case Message::Kind::event: {
      auto& wait = static_cast<EventWait&>(message);
      satisfy(wait, wait.failure);
      break;
    }
    case Message::Kind::retry: {
      auto& action = static_cast<Action&>(message);
      if (is_cancelled(action)) {
        context_.cancel_memory_request(action);
        complete_unrun(action);
      } else if (action.kind == ActionKind::transfer &&
                 !(device_ordered_ && !action.host_ordered)) {
        start_transfer(action);
      } else if (acquire(action)) {
        memory_ready_.push(action);
      }
      break;
    }
    case Message::Kind::cancel: {
      const std::unique_ptr<CancelMessage> owned(&static_cast<CancelMessage&>(message));
      cancel_now(*owned);
      break;
    }
    case Message::Kind::report: write_report(message); break;
    case Message::Kind::room: {
      auto& request = static_cast<RoomRequest&>(message);
      request.next = std::exchange(room_requests_, &request);
      grant_room();
      break;
    }
  }
}

void Stream::cancel_now(const CancelMessage& message) noexcept {
  cancel_reason_ = message.reason;
  cancel_until_ = std::max(cancel_until_, message.until);
  engine_.cancel(message.reason, message.until);
  engine_.each_admitted([this](Action& action) {
    // The worker that runs a started action writes its status.
    if (action.started || action.status != WEIR_STATUS_CANCELLED) return;
    for (EventWait& wait : action.events()) {
      const std::uint64_t id = wait.event.opaque[1];
      if (id == 0 || !context_.slot_of(wait.event).unwatch(id, wait)) continue;
      satisfy(wait, {});
    }
  });
}

bool Stream::is_below_watermark(const Action& action) const noexcept {
  if (cancellation_watermark_.until == nullptr || action.kind != ActionKind::compute) return false;
  const std::uint64_t number =
      cancellation_watermark_.by_task ? action.extras->task : action.sequence();
  return number <= cancellation_watermark_.until->load();
}

/// Whether the action was cancelled while it waited for memory; the engine counts it as started.
bool Stream::is_cancelled(const Action& action) const noexcept {
  return action.sequence() <= cancel_until_ || is_below_watermark(action);
}

/// If a call that is about to run was cancelled, completes it. Returns whether it did.
bool Stream::end_if_cancelled(Action& action) noexcept {
  if (!is_below_watermark(action)) return false;
  complete_unrun(action);
  return true;
}

/// Completes an action without memory, because a predecessor has failed or it was cancelled. A
/// cancelled call of a queue waits for its predecessors on the device, because its successors must
/// inherit their failures.
void Stream::complete_unrun(Action& action) noexcept {
  if (action.pending > 0 && is_below_watermark(action)) return engine_.requeue_host_ordered(action);
  if (!action.failure) {
    if (!cancel_reason_) cancel_reason_ = make_cancel_reason();
    action.status = WEIR_STATUS_CANCELLED;
    action.failure = cancel_reason_;
  }
  if (engine_.finish(action)) retire(action);
}

void Stream::finish(Action& action) noexcept {
  if (action.needs_memory) release_memory(action);
  if (engine_.finish(action)) retire(action);
}

/// Acquires the memory of an action that is to start. Returns false if the action waits for memory
/// or was completed because it cannot have it.
bool Stream::acquire(Action& action) noexcept {
  if (action.traced) [[unlikely]]
    stamp_ready(action);
  if (!action.needs_memory) return true;
  Outcome why;
  switch (context_.acquire_memory(action, why)) {
    case Residency::Grant::granted: return true;
    case Residency::Grant::waiting: return false;
    case Residency::Grant::refused: break;
  }
  set_failure(action, std::move(why));
  if (engine_.finish(action)) retire(action);
  return false;
}

void Stream::release_memory(Action& action) noexcept { context_.release_memory(action); }

void Stream::start_transfer(Action& action) noexcept {
  if (!acquire(action)) return;
  domain().device().copy({.source = end_of_copy(action, 0),
                          .target = end_of_copy(action, 1),
                          .sink = this,
                          .token = &action});
}

CopyEnd Stream::end_of_copy(const Action& action, std::size_t end) const noexcept {
  const Operand& operand = action.operands()[end];
  return {operand.memory == kHostMemory ? nullptr : &context_.device_of(operand.memory),
          operand.buffer->address_in(operand.memory), operand.region()};
}

void Stream::copied(void* token, Outcome outcome, std::int64_t started_ns,
                    std::int64_t ended_ns) noexcept {
  auto& action = *static_cast<Action*>(token);
  if (action.traced) {
    action.times().started = started_ns;
    action.times().ended = ended_ns;
  }
  if (!outcome.ok()) set_failure(action, std::move(outcome));
  post_finished(action);
}

void Stream::retry(Action& action) {
  action.message_kind = Message::Kind::retry;
  static_cast<Stream*>(action.stream)->post(action);
}

void Stream::set_failure(Action& action, Outcome outcome) const noexcept {
  action.status = outcome.status;
  std::string label;
  try {
    label = action.label();
  } catch (...) {
    label.clear();
  }
  action.failure = FailureRef::make(outcome.status, std::move(outcome.message), std::move(label),
                                    describe_origin(), action.id());
}

std::string Stream::describe_origin() const noexcept {
  try {
    return "stream '" + name_ + "'";
  } catch (...) {
    return {};
  }
}

/// Wakes the threads that wait to enqueue, if enough actions are complete.
void Stream::grant_room() noexcept {
  const std::uint64_t completed = progress_.completed();
  RoomRequest** link = &room_requests_;
  while (RoomRequest* const request = *link) {
    if (request->completed > completed) {
      link = &request->next;
      continue;
    }
    *link = request->next;
    request->signal.deliver();  // last access: it is on the stack of the waiting thread
  }
}

void Stream::retire(Action& action) noexcept {
  count(action);
  if (action.traced) [[unlikely]]
    trace_end(action);
  if (action.status != WEIR_STATUS_OK || action.kind == ActionKind::drain) [[unlikely]] {
    note_outcome(action);
  }
  Waiter* waiters = nullptr;
  bool kept = false;
  if (action.has_event) {
    if (action.failure) kept = context_.failures().add(action);
    waiters = action.event.close(action.id(), action.waiters);
  }
  // A thread that reads the count sees the events as complete; a waiter that is notified sees the
  // count.
  progress_.complete();
  if (room_requests_ != nullptr) [[unlikely]]
    grant_room();
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

void Stream::note_outcome(const Action& action) noexcept {
  if (action.kind == ActionKind::drain) {
    if (action.fate == DrainFate::reported) progress_.set_failed(false);
    counters_.drained.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counters_.failed.fetch_add(1, std::memory_order_relaxed);
  if (action.status != WEIR_STATUS_POISONED) unreported_.add(action.failure);
  if (action.status != WEIR_STATUS_CANCELLED && action.kind != ActionKind::marker) {
    progress_.set_failed(true);
  }
}

void Stream::count(const Action& action) noexcept {
  if (action.kind != ActionKind::transfer || action.status != WEIR_STATUS_OK) return;
  if (action.elided) {
    counters_.elided.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const bool from_host = action.operands()[0].memory == kHostMemory;
  const bool to_host = action.operands()[1].memory == kHostMemory;
  if (from_host && to_host) return;
  auto& counter = from_host ? counters_.h2d : to_host ? counters_.d2h : counters_.d2d;
  counter.fetch_add(action.bytes(), std::memory_order_relaxed);
}

void Stream::add_to(weir_stats& stats) const noexcept {
  const auto read = [](const sys::Atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  // A drain in flight may be included in the number of drains only.
  const auto without = [](std::uint64_t all, std::uint64_t drains) {
    return all - std::min(all, drains);
  };
  stats.actions_enqueued += without(enqueued(), read(drains_));
  stats.actions_completed += without(progress_.completed(), read(counters_.drained));
  stats.actions_failed += read(counters_.failed);
  stats.bytes_h2d += read(counters_.h2d);
  stats.bytes_d2h += read(counters_.d2h);
  stats.bytes_d2d += read(counters_.d2d);
  stats.transfers_elided += read(counters_.elided);
}

}  // namespace weir::rt
