#include "tasks/queue_task.hpp"

#include <algorithm>
#include <cassert>

#include "stream/registry.hpp"

namespace weir::rt {

TaskExtras& Task::reserve_extras() {
  if (!extras) extras = std::make_unique<TaskExtras>();
  return *extras;
}

void Task::reserve(std::size_t uses, std::size_t scalars) {
  const std::size_t bytes = bytes_of(uses, scalars);
  if (bytes > kInlineBytes) {
    TaskExtras& own = reserve_extras();
    if (own.spill_bytes < bytes) {
      own.spill = std::make_unique_for_overwrite<std::byte[]>(bytes);
      own.spill_bytes = bytes;
    }
  }
  use_count = static_cast<std::uint8_t>(uses);
  scalar_count = static_cast<std::uint8_t>(scalars);
  found = false;
}

void Task::set_use(std::size_t index, const NamedUse& named) {
  Region* kept = nullptr;
  if (!PieceUse::fits(named.region)) [[unlikely]] {
    std::vector<Region>& regions = reserve_extras().regions;
    if (regions.size() < use_count) regions.resize(use_count);
    kept = &regions[index];
  }
  new (arguments() + index * sizeof(PieceUse)) PieceUse(named, kept);
}

void Task::set_name(const char* name) {
  if (name != nullptr && *name != '\0') {
    reserve_extras().name = name;
  } else if (extras) {
    extras->name.clear();
  }
}

std::uint64_t Task::bytes() const noexcept {
  std::uint64_t total = 0;
  for (const PieceUse& use : uses()) {
    total += found ? use.piece()->bytes() : use.region().bytes();
  }
  return total;
}

// ---- Submitted tasks ----------------------------------------------------------------------------

SubmissionQueue::~SubmissionQueue() {
  const SpinGuard guard(lock_);
  assert(first_ == nullptr);
  for (Task* task = spare_; task != nullptr; task = task->next) {
    if (task->ticket != nullptr) task->ticket->next = std::exchange(tickets_, task->ticket);
  }
  properties_.registry.tickets().give(tickets_);
}

SubmissionQueue::OwnedTask SubmissionQueue::take() {
  constexpr std::size_t kChunk = 64;
  const SpinGuard guard(lock_);
  if (spare_ == nullptr) [[unlikely]] {
    Task* const made = tasks_.emplace_back(std::make_unique<Task[]>(kChunk)).get();
    for (std::size_t i = kChunk; i-- > 0;) made[i].next = std::exchange(spare_, &made[i]);
  }
  return OwnedTask(std::exchange(spare_, spare_->next), Return{this});
}

weir_event SubmissionQueue::append(OwnedTask owned) {
  Task& task = *owned;
  const SpinGuard guard(lock_);
  if (task.ticket == nullptr) {
    if (tickets_ == nullptr) tickets_ = properties_.registry.tickets().take();
    task.ticket = std::exchange(tickets_, tickets_->next);
  }
  Ticket& ticket = *task.ticket;
  const std::uint64_t sequence = made_.load() + 1;
  made_.store(sequence);
  task.sequence = sequence & Task::kMostSequence;
  const std::uint64_t id = properties_.serial << Action::kSequenceBits | sequence;
  ticket.waiters = nullptr;
  ticket.status = WEIR_STATUS_OK;
  ticket.event.open(id);
  task.next = nullptr;
  // Before the owner can see the task, which may then complete and be reused.
  if (task.kind == Task::Kind::call) submitted_.fetch_add(1);
  (last_ != nullptr ? last_->next : first_) = owned.release();
  last_ = &task;
  return properties_.registry.event_of(ticket, id);
}

void SubmissionQueue::give(Task& first, Task& last) noexcept {
  const SpinGuard guard(lock_);
  last.next = std::exchange(spare_, &first);
}

void SubmissionQueue::notify_waiters(Task* finished) noexcept {
  Task* last = nullptr;
  for (Task* task = finished; task != nullptr; task = task->next) {
    Ticket& ticket = *task->ticket;
    Waiter* waiters = std::exchange(ticket.waiters, nullptr);
    while (waiters != nullptr) {
      Waiter& waiter = *std::exchange(waiters, waiters->next);
      waiter.deliver(waiter, ticket.status, ticket.failure);
    }
    if (task->kept) [[unlikely]] {
      task->ticket = nullptr;
    } else {
      ticket.failure.reset();
    }
    last = task;
  }
  if (last != nullptr) give(*finished, *last);
}

Task* SubmissionQueue::collect() noexcept {
  const SpinGuard guard(lock_);
  last_ = nullptr;
  return std::exchange(first_, nullptr);
}

void SubmissionQueue::cancel() noexcept {
  const SpinGuard guard(lock_);
  cancelled_until_.store(made_.load());
}

bool SubmissionQueue::request_room(RoomRequest& request) noexcept {
  constexpr std::uint64_t kParts = 8;
  const std::uint64_t most = properties_.max_in_flight;
  const std::uint64_t closed = closed_.load();  // read first, so that closed <= made
  const std::uint64_t made = made_.load();
  if (made - closed < most) return false;
  request.closed = made - most + std::max<std::uint64_t>(1, most / kParts);
  request.next = new_requests_.load();
  while (!new_requests_.compare_exchange_weak(request.next, &request)) {
  }
  return true;
}

void SubmissionQueue::grant_room() noexcept {
  for (RoomRequest* list = new_requests_.exchange(nullptr); list != nullptr;) {
    RoomRequest* const request = std::exchange(list, list->next);
    request->next = std::exchange(requests_, request);
  }
  RoomRequest** link = &requests_;
  while (RoomRequest* const request = *link) {
    if (request->closed > closed_.load()) {
      link = &request->next;
      continue;
    }
    *link = request->next;
    request->has_room.deliver();  // last access: it is on the stack of the waiting thread
  }
}

// ---- Tasks that have a place --------------------------------------------------------------------

BoundTask& BoundTasks::take(Task& task) {
  if (spare_ == nullptr) [[unlikely]] {
    BoundTask& made = made_.emplace_back();
    made.list = this;
    made.deliver = on_end_;
    give(made);
  }
  BoundTask& bound = *std::exchange(spare_, spare_->next);
  bound.task = &task;
  bound.timed = bound.unmeasured = false;
  bound.estimate_ns = 0;
  bound.run_ns = -1;
  return bound;
}

void BoundTasks::give(BoundTask& bound) noexcept {
  bound.access_waits.clear();
  bound.next = std::exchange(spare_, &bound);
}

void BoundTasks::await(Task& access, const std::vector<weir_event>& events,
                       std::size_t ignoring_failure) {
  std::vector<AccessWait> access_waits(events.size());
  BoundTask& bound = take(access);
  bound.access_waits = std::move(access_waits);
  bound.access_waits_left.store(static_cast<std::uint32_t>(events.size() + 1));
  for (std::size_t i = 0; i < events.size(); ++i) {
    AccessWait& access_wait = bound.access_waits[i];
    access_wait.task = &bound;
    access_wait.deliver = on_access_wait;
    access_wait.ignores_failure = i >= events.size() - ignoring_failure;
    const std::uint64_t id = events[i].opaque[1];
    if (id != 0 && registry_.slot_of(events[i]).watch(id, access_wait)) continue;
    const FailureLog::Entry entry = id != 0 ? registry_.failures().find(id) : FailureLog::Entry{};
    on_access_wait(access_wait, entry.status, entry.failure);
  }
  complete_one_wait(bound);
}

void BoundTasks::on_access_wait(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& access_wait = static_cast<AccessWait&>(waiter);
  if (status != WEIR_STATUS_CANCELLED && !access_wait.ignores_failure)
    access_wait.failure = failure;
  complete_one_wait(*access_wait.task);
}

/// Completes the access when all that it waits for has completed.
void BoundTasks::complete_one_wait(BoundTask& bound) noexcept {
  if (bound.access_waits_left.fetch_sub(1) > 1) return;
  FailureRef failure;
  for (const AccessWait& access_wait : bound.access_waits) failure.merge(access_wait.failure);
  bound.deliver(bound, failure ? WEIR_STATUS_POISONED : WEIR_STATUS_OK, failure);
}

// ---- The end of a task --------------------------------------------------------------------------

void LiveTasks::finish(Task& task) noexcept {
  if (task.kind == Task::Kind::fetch && tasks_.first() != &task) {
    task.completion_held = true;
    return;
  }
  close(task);
  while (!tasks_.empty() && tasks_.first()->completion_held) close(*tasks_.first());
}

void LiveTasks::close(Task& task) noexcept {
  assert(!task.pending);
  tasks_.remove(task);
  Ticket& ticket = *task.ticket;
  const bool failed = ticket.status != WEIR_STATUS_OK && ticket.status != WEIR_STATUS_CANCELLED;
  if (failed && task.kind == Task::Kind::call &&
      (first_failure_.status == WEIR_STATUS_OK || task.sequence < first_sequence_)) {
    first_failure_ = {ticket.status, ticket.failure, 0};
    first_sequence_ = task.sequence;
  }
  task.kept = ticket.failure && registry_.failures().add(ticket);
  ticket.waiters = ticket.event.close(ticket.id(), ticket.waiters);
  submissions_.note_complete(task);
  task.next = std::exchange(finished_, &task);
}

void LiveTasks::forget_pieces_of(const weir_buffer& buffer) noexcept {
  for (Task* task = tasks_.first(); task != nullptr; task = tasks_.after(*task)) {
    if (!task->found) continue;
    for (PieceUse& use : task->uses()) {
      if (use.piece() != nullptr && use.piece()->host_storage.buffer == &buffer) use.forget_piece();
    }
  }
}

void LiveTasks::keep_failure(WaitResult&& result) noexcept {
  if (kept_failure_.status == WEIR_STATUS_OK) kept_failure_ = std::move(result);
}

WaitResult LiveTasks::take_failure() noexcept {
  poison.reset();
  const WaitResult kept = std::exchange(kept_failure_, {});
  const WaitResult first = std::exchange(first_failure_, {});
  return first.status != WEIR_STATUS_OK ? first : kept;
}

void LiveTasks::add_failures_to(Unreported& unreported) const noexcept {
  unreported.add(kept_failure_.failure);
  unreported.add(first_failure_.failure);
}

}  // namespace weir::rt
