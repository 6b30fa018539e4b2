// What the owner of a queue does: binding tasks to places, and ending them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/queue.hpp"
#include "runtime/queue_ownership.hpp"
#include "runtime/runtime.hpp"
#include "runtime/watchdog.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kEnoughNs = 2'000'000;  ///< of work for each core of a place
constexpr std::uint64_t kManyTasks = 256;      ///< for each core
constexpr double kUsualGbps = 8;               ///< of a link that says nothing
constexpr std::int64_t kTimedFromNs = 10'000;  ///< of shorter tasks only some are timed,
constexpr std::uint64_t kOneTimedIn = 16;      ///< one of so many

std::size_t index_of(int priority) noexcept { return static_cast<std::size_t>(priority) + 1; }

}  // namespace

void Queue::progress() noexcept {
  while (more_.load() || mail_.load() != nullptr) {
    if (!own_as(Owner::worker)) {
      if (owner_.load() == Owner::worker) return;  // it looks again
      sys::yield();
      continue;
    }
    work();
    Task* const finished = std::exchange(finished_, nullptr);
    disown();
    tell(finished);
  }
}

void Queue::work() noexcept {
  while (more_.exchange(false) || mail_.load() != nullptr) {
    take_mail();
    take_submitted();
    bind_what_can_be();
    grant_room();
  }
}

/// Called where a task's action ends. Nothing of the queue is touched after the visit.
void Queue::on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& task = static_cast<Task&>(static_cast<ActionWatcher&>(waiter));
  Queue& queue = *task.queue;
  queue.visitors_.fetch_add(1);
  task.status = status;
  task.failure = failure;
  if (status == WEIR_STATUS_OK && task.kind == Task::Kind::call && task.timed) {
    task.run_ns = task.action->extras->times.ended - task.action->extras->times.started;
  }
  task.next = queue.mail_.load();
  while (!queue.mail_.compare_exchange_weak(task.next, &task)) {
  }
  queue.progress();
  queue.visitors_.fetch_sub(1);
}

void Queue::take_mail() noexcept {
  Task* list = mail_.exchange(nullptr);
  while (list != nullptr) {
    Task& task = *std::exchange(list, list->next);
    if (task.kind == Task::Kind::call) {
      Lane& lane = lanes_[task.lane];
      --lane.tasks;
      lane.backlog_ns -= task.estimate_ns;
      if (task.unmeasured) --lane.unmeasured;
      note_load(lane);
      rescan_ = rescan_ || lane.tasks <= lane.place->width();  // it is about to starve
      ++lane.share.tasks;
      if (!task.timed && task.status == WEIR_STATUS_OK) lane.share.busy_ns += task.estimate_ns;
      if (task.run_ns >= 0) {
        lane.share.busy_ns += task.run_ns;
        try {
          curve_of(task, lane).note(task.bytes, task.run_ns);
        } catch (const std::bad_alloc&) {  // one time less
        }
      }
    }
    --running_;
    rescan_ = rescan_ || deferred_;
    finish(task);
  }
}

/// Wakes the threads that wait to submit and now may.
void Queue::grant_room() noexcept {
  for (RoomRequest* mail = room_mail_.exchange(nullptr); mail != nullptr;) {
    RoomRequest* const request = std::exchange(mail, mail->next);
    request->next = std::exchange(room_requests_, request);
  }
  RoomRequest** link = &room_requests_;
  while (RoomRequest* const request = *link) {
    if (request->closed > closed_.load()) {
      link = &request->next;
      continue;
    }
    *link = request->next;
    request->granted.deliver();  // the last use: it is on the stack of the thread that waits
  }
}

void Queue::take_submitted() noexcept {
  Task* list = nullptr;
  {
    const SpinGuard guard(submitting_);
    list = std::exchange(submitted_first_, nullptr);
    submitted_last_ = nullptr;
  }
  while (list != nullptr) {
    Task& task = *std::exchange(list, list->next);
    rescan_ = rescan_ || waiting_[0] + waiting_[1] + waiting_[2] < kLookahead;
    task.status = WEIR_STATUS_OK;
    task.failure.reset();
    task.run_ns = -1;
    task.estimate_ns = 0;
    task.unmeasured = task.expected = task.held = false;
    task.pending = true;
    live_.push(task);
    pending_.push(task);
    ++waiting_[index_of(task.priority)];
    if (task.kind == Task::Kind::access) ++waiting_accesses_;
    try {
      expect(task);
    } catch (...) {
      leave_pending(task);
      fail_task(task, current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY));
      continue;
    }
    if (is_free(task)) bind(task);
  }
}

/// Finds the pieces of a task, which learn that it will use them.
void Queue::expect(Task& task) {
  if (task.kind != Task::Kind::call) return;
  for (PieceUse& use : task.uses) use.piece = &coherence_->pieces().find(*use.buffer, use.region);
  for (PieceUse& use : task.uses) {
    use.expected.sequence = task.sequence;
    use.piece->expect(use.expected);
  }
  task.expected = true;
}

/// Whether the task is an access to a region that no task before it is still to use: then it need
/// not wait until places have room for those. It passes no other access: it may be the end of the
/// buffer.
bool Queue::is_free(const Task& task) const noexcept {
  if (task.kind != Task::Kind::access || waiting_accesses_ > 1) return false;
  const PieceUse& use = task.uses.front();
  bool free = true;
  coherence_->pieces().each_overlapping(*use.buffer, use.region, [&](const Piece& piece) {
    free = free && piece.expected == nullptr;
  });
  return free;
}

// ---- Which task ---------------------------------------------------------------------------------

void Queue::bind_what_can_be() noexcept {
  rescan_ = rescan_ || running_ == 0 || cancelled_ != cancel_until_.load();
  while (std::exchange(rescan_, false)) {
    deferred_ = false;
    cancelled_ = cancel_until_.load();
    rescan_ = bind_in_turn();
  }
  if (running_ > 0 || pending_.empty()) return;
  Task& task = *pending_.first();
  leave_pending(task);
  fail_task(task, always_put_off(task));
  more_.store(true);
}

/// Binds tasks, those of high priority first. Returns whether one of higher priority may have
/// waited for one that was bound.
bool Queue::bind_in_turn() noexcept {
  bool again = false;
  std::uint64_t higher = 0;
  for (int priority = 1; priority >= -1; --priority) {
    const std::uint64_t& waiting = waiting_[index_of(priority)];
    const std::uint64_t before = waiting;
    while (waiting > 0 && bind_pass(priority)) {
    }
    again = again || (higher > 0 && waiting < before);
    higher += waiting;
  }
  return again;
}

Outcome Queue::always_put_off(const Task& task) const noexcept {
  try {
    fail_argument(
        "policy '{}' put off task '{}' while nothing was running: no place would ever take it",
        policy_name_, task.label());
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY);
  }
}

/// Goes through the next tasks in order and binds those of a priority that may be bound. Returns
/// whether it is worth to go through them again.
bool Queue::bind_pass(int priority) noexcept {
  ++pass_;
  pass_began_ns_ = runtime_.now_ns();
  std::size_t looked = 0, bound = 0, skipped = 0;
  for (Task* task = pending_.first(); task != nullptr && looked < kLookahead; ++looked) {
    Task& current = *std::exchange(task, Pending::after(*task));
    const bool call = current.kind == Task::Kind::call;
    if (call && !is_cancelled(current) && all_full()) break;
    const bool turn = current.priority == priority && !follows_one_put_off(current) &&
                      (current.kind != Task::Kind::fetch || skipped == 0);
    if (turn && bind(current)) {
      ++bound;
      continue;
    }
    if (!call) break;  // nothing passes what the program waits for
    put_off(current);
    ++skipped;
  }
  return bound > 0 && looked == kLookahead;
}

/// Whether a lane has at least one share of enough work.
bool Queue::has_enough(const Lane& lane, std::uint64_t share) noexcept {
  const std::uint64_t cores = lane.place->width(), tasks = share * lane.tasks;
  if (tasks < 3 * cores + 4) return false;
  return lane.unmeasured > 0 || tasks >= kManyTasks * cores ||
         static_cast<std::int64_t>(share) * lane.backlog_ns >=
             kEnoughNs * static_cast<std::int64_t>(cores);
}

/// A lane that has enough takes no more until it has half of that: each time it does, all tasks to
/// come are looked at.
void Queue::note_load(Lane& lane) noexcept {
  const bool was_full = lane.full;
  lane.full = has_enough(lane, was_full ? 2 : 1);
  rescan_ = rescan_ || (was_full && !lane.full);
}

bool Queue::is_cancelled(const Task& task) const noexcept {
  return task.kind == Task::Kind::call && task.sequence <= cancel_until_.load();
}

bool Queue::all_full() const noexcept {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.full; });
}

/// Whether a task depends on one before it that this pass has put off.
bool Queue::follows_one_put_off(const Task& task) const noexcept {
  const auto conflicts = [this](const Piece& piece, bool writes, bool commutes) {
    if (piece.awaited != pass_) return false;
    if (commutes && piece.awaited_access == WEIR_ACCESS_COMMUTE) return false;
    return writes || (piece.awaited_access & WEIR_ACCESS_WRITE) != 0;
  };
  bool found = false;
  if (task.kind == Task::Kind::access) {
    const PieceUse& use = task.uses.front();
    coherence_->pieces().each_overlapping(*use.buffer, use.region, [&](const Piece& piece) {
      found = found || conflicts(piece, use.writes(), false);
    });
    return found;
  }
  for (std::size_t i = 0; i < task.uses.size() && !found; ++i) {
    const PieceUse& use = task.uses[i];
    found = conflicts(*use.piece, use.writes(), use.commutes);
    for (const Piece* peer : use.piece->peers) {
      found = found || conflicts(*peer, use.writes(), false);
    }
  }
  return found;
}

void Queue::put_off(const Task& task) noexcept {
  for (const PieceUse& use : task.uses) {
    const auto access = static_cast<std::uint8_t>(use.commutes ? WEIR_ACCESS_COMMUTE : use.access);
    const bool first = std::exchange(use.piece->awaited, pass_) != pass_;
    if (first) {
      use.piece->awaited_access = access;
    } else if (use.piece->awaited_access != access) {
      use.piece->awaited_access = WEIR_ACCESS_READ_WRITE;
    }
  }
}

// ---- Which place --------------------------------------------------------------------------------

/// Returns whether the task is no longer pending.
bool Queue::bind(Task& task) noexcept {
  try {
    if (is_cancelled(task)) {
      leave_pending(task);
      fail_task(task, {WEIR_STATUS_CANCELLED, "the queue was cancelled"});
      return true;
    }
    if (task.kind == Task::Kind::call && broken_) {
      leave_pending(task);
      task.failure = broken_;
      end_unbound(task, WEIR_STATUS_POISONED);
      return true;
    }
    const Choice choice = task.kind == Task::Kind::call ? choose(task) : Choice{};
    if (task.kind == Task::Kind::call && choice.lane == nullptr) return false;
    leave_pending(task);
    ++running_;
    if (choice.lane != nullptr) {
      bind_call(task, choice);
    } else {
      bind_access(task);
    }
  } catch (...) {
    if (task.pending) {
      leave_pending(task);
    } else {
      --running_;
    }
    fail_task(task, current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  return true;
}

Queue::Choice Queue::choose(const Task& task) {
  candidates_.clear();
  candidate_lanes_.clear();
  for (Lane& lane : lanes_) {
    if ((task.lanes >> lane.index & 1) == 0) continue;
    candidates_.push_back(candidate_for(task, lane));
    candidate_lanes_.push_back(&lane);
  }
  const std::size_t chosen = policy_->choose(task.label(), candidates_);
  if (chosen == WEIR_POLICY_LATER) {
    deferred_ = true;
    return {};
  }
  if (chosen >= candidates_.size()) {
    fail_argument("policy '{}' chose candidate {} of {} for task '{}'", policy_name_, chosen,
                  candidates_.size(), task.label());
  }
  const weir_candidate& candidate = candidates_[chosen];
  if (candidate.full) return {};
  return {candidate_lanes_[chosen], candidate.missing_bytes, candidate.run_ns};
}

weir_candidate Queue::candidate_for(const Task& task, const Lane& lane) {
  weir_candidate candidate{};
  candidate.place = lane.place;
  candidate.cores = lane.place->width();
  candidate.tasks = lane.tasks;
  candidate.full = lane.full;
  candidate.weight = lane.weight;
  candidate.free_ns = lane.backlog_ns / static_cast<std::int64_t>(candidate.cores);
  candidate.missing_bytes = coherence_->missing_bytes(lane, task.uses);
  for (const PieceUse& use : task.uses) {
    candidate.ready_ns = std::max(candidate.ready_ns, use.piece->ready_ns - pass_began_ns_);
    if (use.writes() && use.piece->owner == lane.index) {
      candidate.owned_bytes += use.piece->bytes();
    }
  }
  if (candidate.missing_bytes > 0) {
    candidate.transfer_ns = std::max<std::int64_t>(0, lane.link_free_ns - pass_began_ns_) +
                            lane.copy_ns(candidate.missing_bytes, kUsualGbps);
  }
  candidate.run_ns = curve_of(task, lane).estimate(task.bytes);
  return candidate;
}

PerformanceModel::Curve& Queue::curve_of(const Task& task, const Lane& lane) {
  const std::size_t at = task.kernel->number() * lanes_.size() + lane.index;
  if (at >= curves_.size()) curves_.resize(at + 1);
  if (curves_[at] == nullptr) curves_[at] = &models_.curve(task.kernel->name(), lane.kind);
  return *curves_[at];
}

void Queue::bind_call(Task& task, const Choice& choice) {
  Lane& lane = *choice.lane;
  coherence_->prepare(lane, task.uses, task.sequence, operands_, waits_);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = task.kernel;
  compute.operands = operands_.data();
  compute.operand_count = operands_.size();
  compute.scalars = task.scalars.data();
  compute.scalar_count = task.scalars.size();
  compute.name = task.name.empty() ? nullptr : task.name.c_str();
  task.lane = lane.index;
  task.timed =
      choice.run_ns < 0 || choice.run_ns >= kTimedFromNs || task.sequence % kOneTimedIn == 0;
  ++lane.tasks;  // before it can be over
  expect_end(task, choice);
  try {
    const weir_event event =
        lane.stream->compute_after(compute, waits_, task, task.sequence, task.timed);
    coherence_->note(lane, task.uses, event);
  } catch (...) {
    --lane.tasks;
    lane.backlog_ns -= task.estimate_ns;
    if (task.unmeasured) --lane.unmeasured;
    note_load(lane);
    throw;
  }
}

void Queue::expect_end(Task& task, const Choice& choice) {
  Lane& lane = *choice.lane;
  const std::int64_t now_ns = pass_began_ns_;
  const auto cores = static_cast<std::int64_t>(lane.place->width());
  std::int64_t start = now_ns + lane.backlog_ns / cores;
  for (const PieceUse& use : task.uses) start = std::max(start, use.piece->ready_ns);
  if (choice.missing_bytes > 0) {
    lane.link_free_ns =
        std::max(lane.link_free_ns, now_ns) + lane.copy_ns(choice.missing_bytes, kUsualGbps);
    start = std::max(start, lane.link_free_ns);
  }
  task.unmeasured = choice.run_ns < 0;
  task.estimate_ns = std::max<std::int64_t>(choice.run_ns, 0);
  lane.backlog_ns += task.estimate_ns;
  if (task.unmeasured) ++lane.unmeasured;
  note_load(lane);
  for (const PieceUse& use : task.uses) {
    if (use.writes()) use.piece->ready_ns = start + task.estimate_ns;
  }
}

void Queue::bind_access(Task& task) {
  std::vector<weir_event> waits;
  std::size_t harmless = 0;
  if (task.kind == Task::Kind::fetch) {
    coherence_->fetch_all(waits);
  } else {
    const PieceUse& use = task.uses.front();
    harmless = coherence_->fetch(*use.buffer, use.region, use.writes(), waits);
  }
  task.gates = std::vector<Gate>(waits.size());
  task.gates_left.store(static_cast<std::uint32_t>(waits.size() + 1));
  for (std::size_t i = 0; i < waits.size(); ++i) {
    Gate& gate = task.gates[i];
    gate.task = &task;
    gate.deliver = on_gate;
    gate.harmless = i >= waits.size() - harmless;
    const std::uint64_t id = waits[i].opaque[1];
    if (id != 0 && runtime_.slot_of(waits[i]).watch(id, gate)) continue;
    const FailureLog::Entry entry = id != 0 ? runtime_.failures().find(id) : FailureLog::Entry{};
    note_gate(gate, entry.status, entry.failure);
  }
  pass_gate(task);
}

void Queue::on_gate(Waiter& waiter, weir_status status, const FailureRef& failure) {
  note_gate(static_cast<Gate&>(waiter), status, failure);
}

void Queue::note_gate(Gate& gate, weir_status status, const FailureRef& failure) noexcept {
  if (status != WEIR_STATUS_CANCELLED && !gate.harmless) gate.failure = failure;
  pass_gate(*gate.task);
}

/// The access is over when all that it waits for is.
void Queue::pass_gate(Task& task) noexcept {
  if (task.gates_left.fetch_sub(1) > 1) return;
  FailureRef failure;
  for (const Gate& gate : task.gates) failure.merge(gate.failure);
  on_end(task, failure ? WEIR_STATUS_POISONED : WEIR_STATUS_OK, failure);
}

// ---- Reports ------------------------------------------------------------------------------------

std::string Queue::report(std::int64_t deadline_ns) {
  while (!own_as(Owner::reader)) {
    if (sys::now_ns() < deadline_ns) {
      sys::yield();
      continue;
    }
    return fmt::format(
        "  queue '{}': {} tasks are not over; a thread that chooses places for them "
        "does not return from policy '{}'\n",
        name_, submitted() - completed(), policy_name_);
  }
  std::string text;
  try {
    text = pending_tasks();
  } catch (...) {  // says nothing
  }
  disown();
  return text;
}

std::string Queue::pending_tasks() const {
  std::string lines;
  std::uint64_t left = 0;
  for (const Task* task = pending_.first(); task != nullptr; task = Pending::after(*task)) {
    if (task->kind != Task::Kind::call || ++left > Watchdog::kListed) continue;
    lines += fmt::format("    '{}', task {}\n", task->label(), task->sequence);
  }
  if (left == 0) return {};
  if (left > Watchdog::kListed) lines += fmt::format("    and {} more\n", left - Watchdog::kListed);
  return fmt::format("  queue '{}': {} tasks have no place yet, {} have one\n{}", name_, left,
                     running_, lines);
}

// ---- Ends ---------------------------------------------------------------------------------------

void Queue::leave_pending(Task& task) noexcept {
  pending_.remove(task);
  task.pending = false;
  --waiting_[index_of(task.priority)];
  if (task.kind == Task::Kind::access) --waiting_accesses_;
  if (!std::exchange(task.expected, false)) return;
  for (PieceUse& use : task.uses) use.piece->unexpect(use.expected);
}

/// Ends a task that no stream has.
void Queue::fail_task(Task& task, Outcome outcome) noexcept {
  const weir_status status = outcome.status;
  std::string label, origin;
  try {
    label = task.label();
    origin = "queue '" + name_ + "'";
  } catch (const std::bad_alloc&) {  // the message must do
  }
  task.failure = FailureRef::make(status, std::move(outcome.message), std::move(label),
                                  std::move(origin), task.ticket->id());
  unreported_.add(task.failure);
  end_unbound(task, status);
}

/// What depends on the task is poisoned by its event; everything that follows when it is not known
/// what that is.
void Queue::end_unbound(Task& task, weir_status status) noexcept {
  task.status = status;
  const bool found = std::all_of(task.uses.begin(), task.uses.end(),
                                 [](const PieceUse& use) { return use.piece != nullptr; });
  if (task.kind == Task::Kind::call && status != WEIR_STATUS_CANCELLED) {
    if (found) {
      coherence_->note_failed(task.uses, runtime_.event_of(*task.ticket, task.ticket->id()));
    } else {
      broken_.merge(task.failure);
      rescan_ = true;
    }
  }
  finish(task);
}

/// A fetch is over when everything before it is, too.
void Queue::finish(Task& task) noexcept {
  if (task.kind == Task::Kind::fetch && live_.first() != &task) {
    task.held = true;
    return;
  }
  close(task);
  while (!live_.empty() && live_.first()->held) close(*live_.first());
}

void Queue::close(Task& task) noexcept {
  live_.remove(task);
  const bool failed = task.status != WEIR_STATUS_OK && task.status != WEIR_STATUS_CANCELLED;
  if (failed && task.kind == Task::Kind::call &&
      (first_status_ == WEIR_STATUS_OK || task.sequence < first_sequence_)) {
    first_status_ = task.status;
    first_failure_ = task.failure;
    first_sequence_ = task.sequence;
  }
  Ticket& ticket = *task.ticket;
  ticket.status = task.status;
  ticket.failure = task.failure;
  const bool kept = task.failure && runtime_.failures().add(ticket);
  task.told = ticket.event.close(ticket.id(), ticket.waiters);
  if (kept) {
    task.ticket = nullptr;
  } else {
    ticket.failure.reset();
  }
  closed_.fetch_add(1);
  if (task.kind == Task::Kind::call) completed_.fetch_add(1);
  task.next = std::exchange(finished_, &task);
}

void Queue::tell(Task* finished) noexcept {
  Task* last = nullptr;
  for (Task* task = finished; task != nullptr; task = task->next) {
    Waiter* waiters = std::exchange(task->told, nullptr);
    while (waiters != nullptr) {
      Waiter& waiter = *std::exchange(waiters, waiters->next);
      waiter.deliver(waiter, task->status, task->failure);
    }
    task->failure.reset();
    last = task;
  }
  if (last == nullptr) return;
  const SpinGuard guard(submitting_);
  last->next = std::exchange(spare_, finished);
}

}  // namespace weir::rt
