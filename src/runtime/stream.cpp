#include "runtime/stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/history.hpp"
#include "runtime/runtime.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostOperands = 1000;
constexpr std::size_t kMostScalars = 255;
constexpr std::size_t kMostEvents = 10'000;
constexpr int kLingerLooks = 20;
constexpr int kPausesPerLook = 20;

/// Marks in the mailbox of a stream that nobody owns.
Message idle_mark;     // any news wakes it
Message waiting_mark;  // only messages do: its engine accepts no action
bool is_mark(const Message* message) noexcept {
  return message == &idle_mark || message == &waiting_mark;
}

Message* reversed(Message* list) noexcept {
  Message* result = nullptr;
  while (list != nullptr) {
    Message* const next = list->next_message;
    list->next_message = result;
    result = list;
    list = next;
  }
  return result;
}

/// Refuses an array that is not there.
void check_array(const void* array, std::size_t count, const char* what) {
  if (array == nullptr && count > 0) fail_argument("{} {} are given as NULL", count, what);
}

bool same_shape(const Region& a, const Region& b) noexcept {
  return a.row == b.row && a.rows == b.rows && a.planes == b.planes;
}

}  // namespace

/// Asks the owner to cancel what was enqueued before it.
struct Stream::CancelMessage : Message {
  std::uint64_t until = 0;
  FailureRef reason;
};

Stream::Stream(Place& place, std::uint64_t serial, std::string name, weir_dependence_policy policy,
               int priority)
    : place_(place),
      runtime_(place.domain().runtime()),
      serial_(serial),
      name_(std::move(name)),
      policy_(policy),
      priority_(static_cast<std::size_t>(priority + 1)),
      pumps_(!place.domain().info().copies_by_worker),
      trace_index_(runtime_.recorder().add_stream(name_)),
      actions_(runtime_.actions(), this),
      mailbox_(&idle_mark),
      engine_(policy) {}

Stream::~Stream() = default;

// ---- Producers ---------------------------------------------------------------------------------

template <class Fill>
weir_event Stream::enqueue(ActionKind kind, bool evented, Fill&& fill) {
  weir_event event = WEIR_EVENT_INIT;
  bool idle = false;
  {
    ActionQueue::Turn turn(queue_);
    turn.reserve();
    Action& action = actions_.take();
    action.kind = kind;
    action.evented = evented;
    action.elided = false;
    action.named = false;
    action.needs_memory = false;
    action.traced = runtime_.recorder().on();
    try {
      fill(action);
    } catch (...) {
      action.recycle();
      actions_.untake(action);
      throw;
    }
    const std::uint64_t id = serial_ << Action::kSequenceBits | (turn.count() + 1);
    action.event.open(id);
    if (action.traced) [[unlikely]] {
      action.times = {};
      action.times.enqueued = runtime_.now_ns();
    }
    if (evented) event = {{action.slot, id}};
    idle = turn.push(action);
  }
  if (idle) notify();
  return event;
}

weir_event Stream::compute(const weir_compute& compute, bool evented) {
  return enqueue(ActionKind::compute, evented,
                 [&](Action& action) { fill_compute(action, compute); });
}

weir_event Stream::transfer(const weir_transfer& transfer, bool evented) {
  return enqueue(ActionKind::transfer, evented,
                 [&](Action& action) { fill_transfer(action, transfer); });
}

weir_event Stream::sync(const weir_sync& sync, bool evented) {
  const ActionKind kind = sync.scope == WEIR_SYNC_SCOPE_OPERANDS  ? ActionKind::sync
                          : sync.scope == WEIR_SYNC_SCOPE_NOTHING ? ActionKind::marker
                                                                  : ActionKind::barrier;
  return enqueue(kind, evented, [&](Action& action) { fill_sync(action, sync); });
}

weir_event Stream::drain() {
  drains_.fetch_add(1, std::memory_order_relaxed);
  return enqueue(ActionKind::drain, true, [](Action& action) { action.reserve(0, 0, 0); });
}

weir_event Stream::mark() {
  return enqueue(ActionKind::marker, true, [](Action& action) { action.reserve(0, 0, 0); });
}

Operand Stream::make_operand(weir_buffer* handle, const weir_region& region, weir_access access,
                             const Domain* domain) const {
  weir_buffer& buffer = weir_buffer::check(handle);
  if (buffer.owner() != &runtime_) {
    fail_argument("buffer '{}' belongs to another runtime than stream '{}'", buffer.name(), name_);
  }
  if (access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE) {
    fail_argument("access {} of an operand in buffer '{}' is not read, write or read-write",
                  static_cast<int>(access), buffer.name());
  }
  buffer.note_use(serial_);
  Operand operand{make_region(region, buffer.bytes(), buffer.name().c_str())};
  operand.memory = static_cast<std::uint8_t>(domain ? domain->memory_of(buffer) : kHostMemory);
  operand.access = static_cast<std::uint8_t>(access);
  operand.buffer = &buffer;
  return operand;
}

const KernelCode& Stream::code_of(const weir_kernel& kernel) {
  CachedCode& cached =
      code_cache_[reinterpret_cast<std::uintptr_t>(&kernel) / sizeof(weir_kernel) % kCodeCache];
  if (cached.kernel == &kernel) [[likely]]
    return *cached.code;
  if (!runtime_.kernels().has(kernel)) {
    fail_argument("kernel '{}' belongs to another runtime than stream '{}'", kernel.name(), name_);
  }
  const std::string& backend = domain().info().backend;
  const KernelCode* const code = kernel.code_for(backend);
  if (code == nullptr) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' has no implementation for domain '{}' (backend {}); it has: {}",
         kernel.name(), domain().name(), backend, kernel.backends());
  }
  cached = {&kernel, code};
  return *code;
}

void Stream::fill_compute(Action& action, const weir_compute& compute) {
  if (compute.operand_count > kMostOperands || compute.scalar_count > kMostScalars) {
    fail_argument("{} operands and {} scalars are too many: at most {} and {}",
                  compute.operand_count, compute.scalar_count, kMostOperands, kMostScalars);
  }
  check_array(compute.operands, compute.operand_count, "operands");
  check_array(compute.scalars, compute.scalar_count, "scalars");
  const weir_kernel& kernel = compute.kernel != nullptr || compute.kernel_name == nullptr
                                  ? weir_kernel::check(compute.kernel)
                                  : runtime_.kernels().find(compute.kernel_name);
  action.reserve(compute.operand_count, compute.scalar_count, 0);
  action.code = &code_of(kernel);
  const Domain& here = domain();
  Operand* operand = action.operands().data();
  for (std::size_t i = 0; i < compute.operand_count; ++i, ++operand) {
    const weir_operand& given = compute.operands[i];
    *operand = make_operand(given.buffer, given.region, given.access, &here);
    action.needs_memory |= operand->memory != kHostMemory;
  }
  std::copy_n(compute.scalars, compute.scalar_count, action.scalars().data());
  if (compute.name != nullptr) action.set_name(compute.name);
}

void Stream::fill_transfer(Action& action, const weir_transfer& transfer) const {
  const auto domain_of = [&](const weir_endpoint& end) -> const Domain* {
    if (end.domain == nullptr) return nullptr;
    const weir_domain& given = weir_domain::check(end.domain);
    if (&given.runtime() != &runtime_) {
      fail_argument("domain '{}' belongs to another runtime than stream '{}'", given.name(), name_);
    }
    return &given;
  };
  const Domain* const from = domain_of(transfer.source);
  const Domain* const to = domain_of(transfer.target);
  action.reserve(2, 0, 0);
  Operand& source = action.operands()[0];
  Operand& target = action.operands()[1];
  source = make_operand(transfer.source.buffer, transfer.source.region, WEIR_ACCESS_READ, from);
  target = make_operand(transfer.target.buffer, transfer.target.region, WEIR_ACCESS_WRITE, to);
  if (!same_shape(source.region(), target.region())) {
    fail_argument("{} x {} x {} bytes of buffer '{}' cannot fill {} x {} x {} of buffer '{}'",
                  source.row, source.rows, source.planes, source.buffer->name(), target.row,
                  target.rows, target.planes, target.buffer->name());
  }
  check_route(source, target, from, to);
  const bool same_memory = source.buffer == target.buffer && source.memory == target.memory;
  action.elided = same_memory && source.region() == target.region();
  action.needs_memory =
      !action.elided && (source.memory != kHostMemory || target.memory != kHostMemory);
  if (same_memory && !action.elided && overlap(source.region(), target.region())) {
    fail_argument("source and target of a transfer within buffer '{}' overlap",
                  source.buffer->name());
  }
  if (transfer.name != nullptr) action.set_name(transfer.name);
}

/// Makes sure that the device of this stream can make the copy.
void Stream::check_route(const Operand& source, const Operand& target, const Domain* from,
                         const Domain* to) const {
  if (source.memory == target.memory && source.buffer == target.buffer &&
      source.region() == target.region()) {
    return;
  }
  const std::uint16_t own = domain().residency().memory();
  const bool within_host = source.memory == kHostMemory && target.memory == kHostMemory;
  if (within_host ? !domain().info().aliases_host : source.memory != own && target.memory != own) {
    fail_argument("neither end of the transfer is domain '{}' of stream '{}': use a stream of '{}'",
                  domain().name(), name_,
                  to ? to->name() : (from ? from->name() : std::string("host")));
  }
  const Domain* const peer = target.memory == own ? from : to;
  const bool host_peer = (target.memory == own ? source : target).memory == kHostMemory;
  const Device* const other = host_peer || peer == nullptr ? nullptr : &peer->device();
  if (!domain().device().reaches(other)) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "domain '{}' has no link to '{}': transfer to host memory and from there", domain().name(),
         other ? peer->name() : std::string("host"));
  }
}

void Stream::check_not_later(const weir_event& event) const {
  const std::uint64_t id = event.opaque[1];
  if (id >> Action::kSequenceBits != serial_) return;
  const std::uint64_t position = id - (serial_ << Action::kSequenceBits);
  if (position > enqueued()) {
    fail_argument("stream '{}' cannot wait for its own later action: number {} of {} enqueued",
                  name_, position, enqueued());
  }
}

void Stream::fill_sync(Action& action, const weir_sync& sync) const {
  if (sync.scope < WEIR_SYNC_SCOPE_STREAM || sync.scope > WEIR_SYNC_SCOPE_NOTHING) {
    fail_argument("scope {} of a sync is not stream, operands or nothing",
                  static_cast<int>(sync.scope));
  }
  if (sync.scope == WEIR_SYNC_SCOPE_OPERANDS && sync.operand_count == 0) {
    fail_argument("a sync with WEIR_SYNC_SCOPE_OPERANDS has no operands: it would order nothing");
  }
  if (sync.scope != WEIR_SYNC_SCOPE_OPERANDS && sync.operand_count > 0) {
    fail_argument("a sync with {} operands needs WEIR_SYNC_SCOPE_OPERANDS", sync.operand_count);
  }
  if (sync.operand_count > kMostOperands || sync.event_count > kMostEvents) {
    fail_argument("{} operands and {} events are too many: at most {} and {}", sync.operand_count,
                  sync.event_count, kMostOperands, kMostEvents);
  }
  check_array(sync.operands, sync.operand_count, "operands");
  check_array(sync.events, sync.event_count, "events");
  for (std::size_t i = 0; i < sync.event_count; ++i) {
    runtime_.check_event(sync.events[i]);
    check_not_later(sync.events[i]);
  }
  action.reserve(sync.operand_count, 0, sync.event_count);
  const Domain& here = domain();
  Operand* operand = action.operands().data();
  for (std::size_t i = 0; i < sync.operand_count; ++i) {
    const weir_operand& given = sync.operands[i];
    *operand++ = make_operand(given.buffer, given.region, WEIR_ACCESS_READ_WRITE, &here);
  }
  EventWait* wait = action.events().data();
  for (std::size_t i = 0; i < sync.event_count; ++i, ++wait) {
    wait->event = sync.events[i];
    wait->action = &action;
    wait->message_kind = Message::Kind::event;
    wait->deliver = deliver_event;
  }
  if (sync.name != nullptr) action.set_name(sync.name);
}

void Stream::cancel() {
  auto message = std::make_unique<CancelMessage>();
  message->message_kind = Message::Kind::cancel;
  message->until = enqueued();
  message->reason = FailureRef::make(WEIR_STATUS_CANCELLED, "the stream was cancelled", "cancel",
                                     describe_origin(), serial_ << Action::kSequenceBits);
  post(*message.release());
}

bool Stream::settled() const noexcept {
  return counters_.completed.load(std::memory_order_acquire) == enqueued() &&
         !failed_.load(std::memory_order_acquire);
}

void Stream::wait_until_left() const noexcept {
  while (!is_mark(mailbox_.load(std::memory_order_acquire)) ||
         owners_.load(std::memory_order_acquire) > 0) {
    sys::yield();
  }
}

// ---- Ownership ---------------------------------------------------------------------------------

void Stream::notify() noexcept {
  Message* mark = &idle_mark;
  if (!mailbox_.compare_exchange_strong(mark, nullptr, std::memory_order_seq_cst)) return;
  owners_.fetch_add(1, std::memory_order_acq_rel);
  schedule();
}

void Stream::post(Message& message) noexcept {
  Message* head = mailbox_.load(std::memory_order_relaxed);
  do {
    message.next_message = is_mark(head) ? nullptr : head;
  } while (!mailbox_.compare_exchange_weak(head, &message, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
  if (!is_mark(head)) return;
  owners_.fetch_add(1, std::memory_order_acq_rel);
  schedule();
}

void Stream::schedule() noexcept {
  if (pumps_) {
    pump();
  } else {
    place_.push(*this);
  }
}

/// Does what needs no worker on the thread that brought the news.
void Stream::pump() noexcept {
  do {
    advance_transfers();
    if (has_call()) {
      place_.push(*this);
      return;
    }
  } while (!release());
}

bool Stream::release() noexcept {
  actions_.flush();
  const bool accepting = engine_.accepts();
  if (accepting && !queue_.go_idle()) {
    if (!queue_.look()) sys::yield();  // a producer is about to push, perhaps on this core
    return false;
  }
  const std::uint64_t popped = queue_.popped();
  Message* expected = nullptr;
  Message* const mark = accepting ? &idle_mark : &waiting_mark;
  if (!mailbox_.compare_exchange_strong(expected, mark, std::memory_order_seq_cst)) return false;
  // A producer that came in between did not find the mark.
  if (accepting && queue_.pushed() != popped) {
    expected = mark;
    if (mailbox_.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) {
      return false;
    }
  }
  owners_.fetch_sub(1, std::memory_order_release);
  return true;
}

// ---- The owner ---------------------------------------------------------------------------------

Action* Stream::advance() noexcept {
  for (;;) {
    if (pumps_) {
      advance_transfers();
    } else {
      turn();
    }
    if (Action* const granted = granted_.pop()) return granted;
    if (Action* const ready = engine_.pop_compute()) {
      if (acquire(*ready)) return ready;
      continue;
    }
    if (pumps_) return nullptr;
    Action* alone = nullptr;
    if (!admit_next(alone)) return nullptr;
    if (alone != nullptr) {
      if (acquire(*alone)) return alone;
    }
  }
}

bool Stream::linger() noexcept {
  const bool accepting = engine_.accepts();
  for (int look = 0; look < kLingerLooks; ++look) {
    // Looking less often leaves the lines to the threads that write them.
    for (int i = 0; i < kPausesPerLook; ++i) sys::pause();
    if (mailbox_.load(std::memory_order_relaxed) != nullptr) return true;
    if (accepting && queue_.look()) return true;
  }
  return false;
}

bool Stream::has_more() noexcept {
  return has_call() || (!pumps_ && engine_.accepts() && queue_.look());
}

/// Reads the mail, starts transfers, retires what is over.
void Stream::turn() noexcept {
  do {
    if (mailbox_.load(std::memory_order_relaxed) != nullptr) read_mail();
    while (Action* const transfer = engine_.pop_transfer()) start_transfer(*transfer);
    while (Action* const over = engine_.pop_finished()) retire(*over);
  } while (mailbox_.load(std::memory_order_relaxed) != nullptr);
}

/// The same, admitting all there is: links are to be busy while workers compute.
void Stream::advance_transfers() noexcept {
  Action* alone = nullptr;
  do {
    turn();
    queue_.look();
  } while (admit_next(alone));
}

bool Stream::admit_next(Action*& alone) noexcept {
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
  const bool may_run_alone = action->kind == ActionKind::compute && !pumps_ &&
                             (place_.exclusive() || place_.keeps(*action));
  if (engine_.admit(*action, may_run_alone)) alone = action;
  return true;
}

void Stream::watch_events(Action& action) noexcept {
  for (EventWait& wait : action.events()) {
    const auto [slot, id] = wait.event.opaque;
    if (id == 0) continue;
    if (runtime_.actions().at(slot)->watch(id, wait)) {
      ++action.pending;
    } else {
      action.failure.merge(runtime_.failures().find(id).failure);
    }
  }
}

void Stream::deliver_event(Waiter& waiter, weir_status, const FailureRef& failure) {
  auto& wait = static_cast<EventWait&>(waiter);
  wait.failure = failure;
  static_cast<Stream*>(wait.action->stream)->post(wait);
}

void Stream::read_mail() noexcept {
  Message* list = reversed(mailbox_.exchange(nullptr, std::memory_order_acquire));
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
      engine_.satisfy(*wait.action, wait.failure);
      break;
    }
    case Message::Kind::retry: {
      auto& action = static_cast<Action&>(message);
      if (action.kind == ActionKind::transfer) {
        start_transfer(action);
      } else if (acquire(action)) {
        granted_.push(action);
      }
      break;
    }
    case Message::Kind::cancel: {
      const std::unique_ptr<CancelMessage> owned(&static_cast<CancelMessage&>(message));
      cancel_now(*owned);
      break;
    }
  }
}

void Stream::cancel_now(const CancelMessage& message) noexcept {
  cancel_until_ = std::max(cancel_until_, message.until);
  cancel_reason_ = message.reason;
  engine_.cancel(message.reason);
  engine_.each_admitted([this](Action& action) {
    if (action.status != WEIR_STATUS_CANCELLED) return;
    for (EventWait& wait : action.events()) {
      const auto [slot, id] = wait.event.opaque;
      if (id == 0 || !runtime_.actions().at(slot)->unwatch(id, wait)) continue;
      engine_.satisfy(action, {});
    }
  });
}

void Stream::finish(Action& action) noexcept {
  if (action.needs_memory) release_memory(action);
  if (engine_.finish(action)) retire(action);
}

/// Gets the memory of an action that is to start. When it must wait, or cannot have it, that is
/// taken care of and false is returned.
bool Stream::acquire(Action& action) noexcept {
  if (action.traced) [[unlikely]]
    stamp_ready(action);
  if (!action.needs_memory) return true;
  Outcome why;
  switch (runtime_.acquire_memory(action, why)) {
    case Residency::Grant::granted: return true;
    case Residency::Grant::waiting: return false;
    case Residency::Grant::refused: break;
  }
  set_failure(action, std::move(why));
  if (engine_.finish(action)) retire(action);
  return false;
}

void Stream::release_memory(Action& action) noexcept { runtime_.release_memory(action); }

void Stream::start_transfer(Action& action) noexcept {
  if (!acquire(action)) return;
  const auto end_of = [this](const Operand& operand) -> CopyEnd {
    return {operand.memory == kHostMemory ? nullptr : &runtime_.device_of(operand.memory),
            operand.buffer->address_in(operand.memory), operand.region()};
  };
  domain().device().copy({.source = end_of(action.operands()[0]),
                          .target = end_of(action.operands()[1]),
                          .sink = this,
                          .token = &action});
}

void Stream::copied(void* token, Outcome outcome, std::int64_t started_ns,
                    std::int64_t ended_ns) noexcept {
  auto& action = *static_cast<Action*>(token);
  action.times.started = started_ns;
  action.times.ended = ended_ns;
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

void Stream::retire(Action& action) noexcept {
  count(action);
  if (action.traced) [[unlikely]]
    trace_end(action);
  if (action.status != WEIR_STATUS_OK || action.kind == ActionKind::drain) [[unlikely]] {
    note_outcome(action);
  }
  Waiter* waiters = nullptr;
  if (action.evented) {
    if (action.failure) runtime_.failures().add(action.id(), action.status, action.failure);
    waiters = action.event.close(action.id(), action.waiters);
  }
  // Whoever sees the count finds the events complete; whoever is told finds the count up to date.
  counters_.completed.store(counters_.completed.load(std::memory_order_relaxed) + 1,
                            std::memory_order_release);
  while (waiters != nullptr) {
    Waiter& waiter = *std::exchange(waiters, waiters->next);
    waiter.deliver(waiter, action.status, action.failure);
  }
  action.recycle();
  actions_.give(action);
}

void Stream::note_outcome(const Action& action) noexcept {
  if (action.kind == ActionKind::drain) {
    failed_.store(false, std::memory_order_release);
    counters_.drained.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counters_.failed.fetch_add(1, std::memory_order_relaxed);
  if (action.status != WEIR_STATUS_CANCELLED && action.kind != ActionKind::marker) {
    failed_.store(true, std::memory_order_release);
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
  stats.actions_enqueued += enqueued() - drains_.load(std::memory_order_relaxed);
  stats.actions_completed += counters_.completed - counters_.drained;
  stats.actions_failed += counters_.failed;
  stats.bytes_h2d += counters_.h2d;
  stats.bytes_d2h += counters_.d2h;
  stats.bytes_d2d += counters_.d2d;
  stats.transfers_elided += counters_.elided;
}

// ---- Tracing -----------------------------------------------------------------------------------

void Stream::stamp_ready(Action& action) noexcept {
  if (action.times.ready == 0) action.times.ready = runtime_.now_ns();
}

void Stream::trace_admission(const Action& action) noexcept {
  try {
    if (!history_) history_ = std::make_unique<History>(policy_);
    trace::Recorder& recorder = runtime_.recorder();
    recorder.record_dependences(action.id(), history_->note(action));
    for (const EventWait& wait : const_cast<Action&>(action).events()) {
      const std::uint64_t id = wait.event.opaque[1];
      if (id != 0) recorder.record_dependences(action.id(), {&id, 1});
    }
  } catch (...) {
    history_.reset();
  }
}

/// What orders the stream is over because the action that ended last before it is.
void Stream::trace_order(const Action& action) noexcept {
  if (!history_) return;
  const bool orders = action.kind == ActionKind::barrier || action.kind == ActionKind::marker;
  if (!orders) return history_->note_end(action);
  const std::uint64_t last = history_->last_ended();
  if (last != 0) runtime_.recorder().record_dependences(action.id(), {&last, 1});
}

void Stream::trace_end(Action& action) noexcept {
  if (action.kind == ActionKind::drain) return;
  trace_order(action);
  const bool ran = action.started && action.times.ended != 0;
  if (!ran) {
    stamp_ready(action);
    action.times.started = action.times.ended = action.times.ready;
  }
  const bool moved = action.kind == ActionKind::transfer && !action.elided;
  const bool incoming = moved && action.operands()[1].memory == domain().residency().memory();
  trace::Entry entry{.id = action.id(),
                     .enqueued = action.times.enqueued,
                     .ready = action.times.ready,
                     .started = action.times.started,
                     .ended = action.times.ended,
                     .bytes = action.bytes(),
                     .stream = trace_index_,
                     .track = incoming ? domain().track_in
                              : moved  ? domain().track_out
                                       : place_.track(),
                     .lane = action.lane,
                     .kind = action.kind == ActionKind::compute ? trace::Kind::compute
                             : moved                            ? trace::Kind::transfer
                                                                : trace::Kind::sync,
                     .status = action.status};
  std::strncpy(entry.name.data(), action.label(), entry.name.size() - 1);
  runtime_.recorder().record(entry);
}

}  // namespace weir::rt
