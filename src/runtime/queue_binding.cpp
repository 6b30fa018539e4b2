// The work of the owner of a queue: binding tasks to places and completing them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/queue.hpp"
#include "runtime/queue_combining_lock.hpp"
#include "runtime/runtime.hpp"
#include "runtime/watchdog.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kEnoughNs = 2'000'000;  ///< of work for each core of a place
/// Within which the contents that a task uses are expected.
constexpr std::int64_t kSoonNs = 5'000'000;
constexpr std::uint64_t kManyTasks = 256;      ///< for each core
constexpr std::int64_t kTimedFromNs = 10'000;  ///< shorter tasks are timed by sampling
constexpr std::uint64_t kOneTimedIn = 16;      ///< one shorter task in kOneTimedIn is timed

/// Whether the task writes in place on a device. Similar tasks should then wait for it.
bool changes_in_place(const Task& task) noexcept {
  return std::ranges::any_of(task.uses(), [](const PieceUse& use) {
    return use.reads() && use.writes() && !use.piece()->valid_on_host();
  });
}

std::size_t index_of(int priority) noexcept { return static_cast<std::size_t>(priority) + 1; }

}  // namespace

void Queue::try_progress() noexcept {
  while (more_.load() || completed_tasks_.load() != nullptr) {
    if (!try_lock_as(LockState::binding)) {
      if (lock_.load() == LockState::binding) return;  // the owner checks again
      sys::yield();
      continue;
    }
    run_owner_pass();
    Task* const finished = std::exchange(finished_, nullptr);
    unlock();
    notify_waiters(finished);
  }
}

void Queue::run_owner_pass() noexcept {
  while (more_.exchange(false) || completed_tasks_.load() != nullptr) {
    take_completed();
    take_submitted();
    bind_ready();
    grant_room();
  }
}

/// Called at the completion of a task's action. Does not touch the queue after the notifier has
/// left.
void Queue::on_end(Waiter& waiter, weir_status status, const FailureRef& failure) {
  auto& bound = static_cast<BoundTask&>(static_cast<ActionWatcher&>(waiter));
  Queue& queue = *bound.queue;
  queue.notifiers_.fetch_add(1);
  bound.task->ticket->status = status;
  bound.task->ticket->failure = failure;
  if (status == WEIR_STATUS_OK && bound.timed) {
    bound.run_ns = bound.action->extras->times.ended - bound.action->extras->times.started;
  }
  bound.next = queue.completed_tasks_.load();
  while (!queue.completed_tasks_.compare_exchange_weak(bound.next, &bound)) {
  }
  queue.try_progress();
  queue.notifiers_.fetch_sub(1);
}

void Queue::take_completed() noexcept {
  BoundTask* list = completed_tasks_.exchange(nullptr);
  while (list != nullptr) {
    BoundTask& bound = *std::exchange(list, list->next);
    Task& task = *bound.task;
    if (task.kind == Task::Kind::call) note_run(bound);
    give_bound(bound);
    --running_;
    rescan_ = rescan_ || policy_deferred_;
    finish(task);
  }
}

/// Updates the times and the load of a place after a call has completed.
void Queue::note_run(const BoundTask& bound) noexcept {
  const Task& task = *bound.task;
  QueuePlace& queue_place = queue_places_[bound.queue_place];
  --queue_place.tasks;
  queue_place.backlog_ns -= bound.estimate_ns;
  if (bound.unmeasured) --queue_place.unmeasured;
  note_load(queue_place);
  ++queue_place.share.tasks;
  if (!bound.timed && task.ticket->status == WEIR_STATUS_OK) {
    queue_place.share.busy_ns += bound.estimate_ns;
  }
  for (const PieceUse& use : task.uses()) {
    Piece* const piece = use.piece();
    if (piece != nullptr && piece->writer_sequence == task.sequence) piece->ready_ns = 0;
  }
  if (bound.run_ns < 0) return;
  queue_place.share.busy_ns += bound.run_ns;
  try {
    times_of(task, queue_place).curve->note(bound.bytes, bound.run_ns);
  } catch (const std::bad_alloc&) {  // without memory this time is not recorded
  }
}

/// Wakes the threads that wait to submit, if enough tasks are complete.
void Queue::grant_room() noexcept {
  for (RoomRequest* completed = new_room_requests_.exchange(nullptr); completed != nullptr;) {
    RoomRequest* const request = std::exchange(completed, completed->next);
    request->next = std::exchange(room_requests_, request);
  }
  RoomRequest** link = &room_requests_;
  while (RoomRequest* const request = *link) {
    if (request->closed > closed_.load()) {
      link = &request->next;
      continue;
    }
    *link = request->next;
    request->granted.deliver();  // last access: it is on the stack of the waiting thread
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
    task.completion_held = task.kept = false;
    task.pending = true;
    live_.push(task);
    pending_list_of(task).push(task);
    if (task.kind == Task::Kind::call) {
      ++waiting_[task.level];
    } else {
      rescan_ = true;
    }
    try {
      register_uses(task);
    } catch (...) {
      remove_pending(task);
      fail_task(task, current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY));
      continue;
    }
  }
}

/// Finds the pieces of a task and registers its uses with them.
void Queue::register_uses(Task& task) {
  if (task.kind != Task::Kind::call) return;
  found_.clear();
  for (const PieceUse& use : task.uses()) {
    found_.push_back(&coherence_->pieces().find(use.buffer(), use.region()));
  }
  for (std::size_t i = 0; i < found_.size(); ++i) {
    PieceUse& use = task.uses()[i];
    use.set_piece(*found_[i], task.sequence);
    found_[i]->deferred_as(use.kind()).push(use.registered());
  }
  task.found = true;
}

// ---- Which task ---------------------------------------------------------------------------------

void Queue::bind_ready() noexcept {
  rescan_ = rescan_ || running_ == 0 || cancelled_ != cancel_until_.load();
  while (std::exchange(rescan_, false)) {
    policy_deferred_ = false;
    cancelled_ = cancel_until_.load();
    rescan_ = bind_pass();
  }
  Task* const first = running_ == 0 ? first_pending() : nullptr;
  if (first == nullptr) return;
  remove_pending(*first);
  fail_task(*first, policy_never_binds(*first));
  more_.store(true);
}

Queue::Pending& Queue::pending_list_of(const Task& task) noexcept {
  return task.kind == Task::Kind::call ? pending_calls_[task.level] : pending_accesses_;
}

Task* Queue::first_pending() const noexcept {
  Task* first = pending_accesses_.first();
  for (const Pending& list : pending_calls_) {
    Task* const task = list.first();
    if (task != nullptr && (first == nullptr || task->sequence < first->sequence)) first = task;
  }
  return first;
}

/// Binds tasks, high priority first. Returns whether another pass may bind more.
bool Queue::bind_pass() noexcept {
  pass_began_ns_ = runtime_.now_ns();
  coherence_->set_now(pass_began_ns_);
  for (QueuePlace& queue_place : queue_places_) queue_place.claimed = queue_place.claimed_ns = 0;
  bind_accesses();
  bool again = false;
  std::uint64_t higher = 0;
  for (int priority = 1; priority >= -1; --priority) {
    const std::uint64_t& waiting = waiting_[index_of(priority)];
    const std::uint64_t before = waiting;
    if (waiting > 0 && bind_calls(priority)) again = true;
    if (waiting < before) {
      bind_accesses();
      again = again || higher > 0;
    }
    higher += waiting;
  }
  return again;
}

/// Accesses by the program are bound in order; no later task passes them.
void Queue::bind_accesses() noexcept {
  while (Task* const access = pending_accesses_.first()) {
    if (depends_on_deferred(*access)) return;
    bind(*access);
  }
}

/// Examines the deferred tasks of a priority in order, up to the limits, and binds those that it
/// can. Returns whether examining them again may bind more.
bool Queue::bind_calls(int priority) noexcept {
  std::size_t looked = 0, offered = 0, bound = 0;
  claims_ = claims_each_[index_of(priority)];
  Task* task = pending_calls_[index_of(priority)].first();
  for (; task != nullptr && looked < kMostSkipped && offered < kLookahead; ++looked) {
    Task& current = *std::exchange(task, Pending::after(*task));
    const Task* const access = pending_accesses_.first();
    if (access != nullptr && access->sequence < current.sequence) break;
    if (saturated_places_ == queue_places_.size() && !is_cancelled(current)) break;
    if (depends_on_deferred(current)) continue;
    if (policy_->wants_ready_tasks() && is_early(current)) {
      policy_deferred_ = true;
      continue;
    }
    ++offered;
    if (bind(current)) ++bound;
  }
  const bool more = offered == kLookahead && task != nullptr;
  claims_each_[index_of(priority)] =
      more ? std::max<std::int64_t>(
                 1, static_cast<std::int64_t>(waiting_[index_of(priority)] / kLookahead))
           : 1;
  return bound > 0 && task != nullptr;
}

Outcome Queue::policy_never_binds(const Task& task) const noexcept {
  try {
    fail_argument(
        "policy '{}' put off task '{}' while nothing was running: no place would ever take it",
        policy_name_, task.label());
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY);
  }
}

/// Whether a place is saturated, and stays so until its load has dropped. Saturated: enough tasks
/// wait for its cores, and if these are brief, for long enough.
bool Queue::has_enough(const QueuePlace& queue_place) noexcept {
  const std::uint64_t cores = queue_place.place->width(), waiting = cores + 4;
  if (queue_place.tasks < cores + (queue_place.saturated ? waiting * 3 / 4 : waiting)) return false;
  const std::uint64_t share = queue_place.saturated ? 2 : 1;
  return queue_place.unmeasured > 0 || share * queue_place.tasks >= kManyTasks * cores ||
         static_cast<std::int64_t>(share) * queue_place.backlog_ns >=
             kEnoughNs * static_cast<std::int64_t>(cores);
}

/// Each time a place is no longer saturated, another pass examines all deferred tasks.
void Queue::note_load(QueuePlace& queue_place) noexcept {
  const bool was_full = queue_place.saturated;
  queue_place.saturated = has_enough(queue_place);
  if (queue_place.saturated == was_full) return;
  saturated_places_ += queue_place.saturated ? 1 : -1;
  rescan_ = rescan_ || was_full;
}

/// Whether the operands of a task will not have their contents soon.
bool Queue::is_early(const Task& task) const noexcept {
  return std::ranges::any_of(task.uses(), [this](const PieceUse& use) {
    return use.piece()->ready_ns > pass_began_ns_ + kSoonNs;
  });
}

bool Queue::is_cancelled(const Task& task) const noexcept {
  return task.kind == Task::Kind::call && task.sequence <= cancel_until_.load();
}

/// Whether a task depends on an earlier deferred task.
bool Queue::depends_on_deferred(const Task& task) const noexcept {
  bool found = false;
  if (task.kind == Task::Kind::fetch) {
    return std::ranges::any_of(pending_calls_, [&](const Pending& list) {
      return !list.empty() && list.first()->sequence < task.sequence;
    });
  }
  if (task.kind == Task::Kind::access) {
    const PieceUse& use = task.uses().front();
    coherence_->pieces().each_overlapping(use.buffer(), use.region(), [&](const Piece& piece) {
      found = found || piece.depends_on_deferred(task.sequence, use.kind());
    });
    return found;
  }
  for (const PieceUse& use : task.uses()) {
    if (use.piece()->depends_on_deferred(task.sequence, use.kind())) return true;
    const UseKind of_peers = use.writes() ? UseKind::write : UseKind::read;
    for (const Piece* peer : use.piece()->peers) {
      if (peer->depends_on_deferred(task.sequence, of_peers)) return true;
    }
  }
  return false;
}

// ---- Which place --------------------------------------------------------------------------------

/// Binds the task if possible. Returns whether it is no longer deferred.
bool Queue::bind(Task& task) noexcept {
  try {
    if (is_cancelled(task)) {
      remove_pending(task);
      fail_task(task, {WEIR_STATUS_CANCELLED, "the queue was cancelled"});
      return true;
    }
    if (task.kind == Task::Kind::call && broken_) {
      remove_pending(task);
      task.ticket->failure = broken_;
      end_unbound(task, WEIR_STATUS_POISONED);
      return true;
    }
    const Choice choice = task.kind == Task::Kind::call ? choose(task) : Choice{};
    if (task.kind == Task::Kind::call && choice.queue_place == nullptr) return false;
    remove_pending(task);
    ++running_;
    if (choice.queue_place != nullptr) {
      bind_call(task, choice);
    } else {
      bind_access(task);
    }
  } catch (...) {
    if (task.pending) {
      remove_pending(task);
    } else {
      --running_;
    }
    fail_task(task, current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  return true;
}

Queue::Choice Queue::choose(const Task& task) {
  candidates_.clear();
  candidate_places_.clear();
  estimates_.clear();
  const std::uint64_t bytes = task.bytes();
  for (QueuePlace& queue_place : queue_places_) {
    if ((task.allowed_places >> queue_place.index & 1) != 0)
      add_candidate(task, bytes, queue_place);
  }
  const std::size_t chosen = policy_->choose(task.label(), candidates_, estimates_);
  if (chosen == WEIR_POLICY_LATER) {
    policy_deferred_ = true;
    return {};
  }
  if (chosen >= candidates_.size()) {
    fail_argument("policy '{}' chose candidate {} of {} for task '{}'", policy_name_, chosen,
                  candidates_.size(), task.label());
  }
  const weir_candidate& candidate = candidates_[chosen];
  QueuePlace& queue_place = *candidate_places_[chosen];
  if (candidate.full) {
    queue_place.claim(changes_in_place(task) ? 1 : claims_,
                      std::max<std::int64_t>(candidate.run_ns, 0),
                      pass_began_ns_ + candidate.ready_ns + candidate.transfer_ns);
    return {};
  }
  const std::int64_t arrival_ns = candidate.ready_ns + candidate.transfer_ns;
  note_bypassed(task, chosen);
  const bool measured = estimates_[chosen].source == PerformanceModel::Source::measured;
  return {.queue_place = &queue_place,
          .arrival_ns = pass_began_ns_ + arrival_ns,
          .start_ns = pass_began_ns_ + std::max(candidate.free_ns, arrival_ns),
          .run_ns = candidate.run_ns,
          .unsure = !measured,
          .bytes = bytes};
}

/// Records, for remarks(), a task that idle places could have run.
void Queue::note_bypassed(const Task& task, std::size_t chosen) noexcept {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    QueuePlace& queue_place = *candidate_places_[i];
    if (i == chosen || queue_place.share.tasks + queue_place.tasks > 0) continue;
    const bool known = queue_place.bypassed.kernel != nullptr && queue_place.bypassed.run_ns >= 0;
    if (known || (queue_place.bypassed.kernel != nullptr && candidates_[i].run_ns < 0)) continue;
    queue_place.bypassed = {task.kernel, candidates_[i].run_ns, candidates_[chosen].run_ns,
                            estimates_[i].source, candidate_places_[chosen]->index};
  }
}

void Queue::add_candidate(const Task& task, std::uint64_t bytes, QueuePlace& queue_place) {
  const ArrivalEstimate arrival = coherence_->arrival_in(queue_place, task.uses());
  weir_candidate candidate{};
  candidate.place = queue_place.place;
  candidate.cores = queue_place.place->width();
  candidate.tasks = queue_place.tasks;
  candidate.full = queue_place.saturated;
  candidate.weight = queue_place.weight;
  candidate.free_ns = queue_place.expected_free_ns(pass_began_ns_);
  candidate.missing_bytes = arrival.missing_bytes;
  candidate.ready_ns = std::max<std::int64_t>(0, arrival.value_ns - pass_began_ns_);
  candidate.transfer_ns =
      std::max<std::int64_t>(0, arrival.ready_ns - pass_began_ns_ - candidate.ready_ns);
  for (const PieceUse& use : task.uses()) {
    if (use.writes() && use.piece()->owner == queue_place.index) {
      candidate.owned_bytes += use.piece()->bytes();
    }
  }
  const Times& times = times_of(task, queue_place);
  candidate.run_ns = times.curve->estimate(bytes);
  candidates_.push_back(candidate);
  candidate_places_.push_back(&queue_place);
  estimates_.push_back({arrival.copying_ns, queue_place.unmeasured,
                        bound_[task.kernel->number()] - times.bound_before,
                        times.curve->source(bytes)});
}

Queue::Times& Queue::times_of(const Task& task, const QueuePlace& queue_place) {
  const std::size_t kernel = task.kernel->number();
  if (kernel >= bound_.size()) bound_.resize(kernel + 1);
  const std::size_t at = kernel * queue_places_.size() + queue_place.index;
  if (at >= times_.size()) times_.resize(bound_.size() * queue_places_.size());
  Times& times = times_[at];
  if (times.curve == nullptr) times.curve = &models_.curve(task.kernel->name(), queue_place.kind);
  return times;
}

void Queue::bind_call(Task& task, const Choice& choice) {
  QueuePlace& queue_place = *choice.queue_place;
  coherence_->prepare(queue_place, task.uses(), task.sequence, operands_, waits_);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = task.kernel;
  compute.operands = operands_.data();
  compute.operand_count = operands_.size();
  compute.scalars = task.scalars().data();
  compute.scalar_count = task.scalars().size();
  compute.name = task.has_name() ? task.label() : nullptr;
  times_of(task, queue_place).bound_before = ++bound_[task.kernel->number()];
  BoundTask& bound = take_bound(task);
  bound.queue_place = queue_place.index;
  bound.bytes = choice.bytes;
  bound.timed = choice.unsure || choice.run_ns >= kTimedFromNs || task.sequence % kOneTimedIn == 0;
  ++queue_place.tasks;  // before the task can complete
  expect_end(bound, choice);
  try {
    const weir_event event =
        queue_place.stream->compute_after(compute, waits_, bound, task.sequence, bound.timed);
    coherence_->note(queue_place, task.uses(), event);
  } catch (...) {
    --queue_place.tasks;
    queue_place.backlog_ns -= bound.estimate_ns;
    if (bound.unmeasured) --queue_place.unmeasured;
    note_load(queue_place);
    give_bound(bound);
    throw;
  }
}

BoundTask& Queue::take_bound(Task& task) {
  if (spare_bound_ == nullptr) [[unlikely]] {
    BoundTask& made = bound_tasks_.emplace_back();
    made.queue = this;
    made.deliver = on_end;
    give_bound(made);
  }
  BoundTask& bound = *std::exchange(spare_bound_, spare_bound_->next);
  bound.task = &task;
  bound.timed = bound.unmeasured = false;
  bound.estimate_ns = 0;
  bound.run_ns = -1;
  return bound;
}

void Queue::give_bound(BoundTask& bound) noexcept {
  bound.access_waits.clear();
  bound.next = std::exchange(spare_bound_, &bound);
}

void Queue::expect_end(BoundTask& bound, const Choice& choice) {
  QueuePlace& queue_place = *choice.queue_place;
  bound.unmeasured = choice.run_ns < 0;
  bound.estimate_ns = std::max<std::int64_t>(choice.run_ns, 0);
  queue_place.backlog_ns += bound.estimate_ns;
  queue_place.core_times.occupy(choice.arrival_ns, bound.estimate_ns);
  if (bound.unmeasured) ++queue_place.unmeasured;
  note_load(queue_place);
  for (const PieceUse& use : bound.task->uses()) {
    if (!use.writes()) continue;
    use.piece()->ready_ns = choice.start_ns + bound.estimate_ns;
    use.piece()->writer_sequence = bound.task->sequence;
  }
}

void Queue::bind_access(Task& task) {
  std::vector<weir_event> waits;
  std::size_t ignoring_failure = 0;
  if (task.kind == Task::Kind::fetch) {
    coherence_->fetch_all(waits);
  } else {
    const PieceUse& use = task.uses().front();
    ignoring_failure = coherence_->fetch(use.buffer(), use.region(), use.writes(), waits);
  }
  std::vector<AccessWait> gates(waits.size());
  BoundTask& bound = take_bound(task);
  bound.access_waits = std::move(gates);
  bound.access_waits_left.store(static_cast<std::uint32_t>(waits.size() + 1));
  for (std::size_t i = 0; i < waits.size(); ++i) {
    AccessWait& access_wait = bound.access_waits[i];
    access_wait.task = &bound;
    access_wait.deliver = on_access_wait;
    access_wait.ignores_failure = i >= waits.size() - ignoring_failure;
    const std::uint64_t id = waits[i].opaque[1];
    if (id != 0 && runtime_.slot_of(waits[i]).watch(id, access_wait)) continue;
    const FailureLog::Entry entry = id != 0 ? runtime_.failures().find(id) : FailureLog::Entry{};
    record_access_wait(access_wait, entry.status, entry.failure);
  }
  complete_access_wait(bound);
}

void Queue::on_access_wait(Waiter& waiter, weir_status status, const FailureRef& failure) {
  record_access_wait(static_cast<AccessWait&>(waiter), status, failure);
}

void Queue::record_access_wait(AccessWait& access_wait, weir_status status,
                               const FailureRef& failure) noexcept {
  if (status != WEIR_STATUS_CANCELLED && !access_wait.ignores_failure)
    access_wait.failure = failure;
  complete_access_wait(*access_wait.task);
}

/// Completes the access when all that it waits for has completed.
void Queue::complete_access_wait(BoundTask& task) noexcept {
  if (task.access_waits_left.fetch_sub(1) > 1) return;
  FailureRef failure;
  for (const AccessWait& access_wait : task.access_waits) failure.merge(access_wait.failure);
  on_end(task, failure ? WEIR_STATUS_POISONED : WEIR_STATUS_OK, failure);
}

// ---- Reports ------------------------------------------------------------------------------------

std::string Queue::report(std::int64_t deadline_ns) {
  while (!try_lock_as(LockState::inspecting)) {
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
  } catch (...) {  // reports nothing
  }
  unlock();
  return text;
}

std::string Queue::pending_tasks() const {
  std::string lines;
  std::uint64_t left = 0;
  for (std::size_t i = pending_calls_.size(); i-- > 0;) {
    for (const Task* task = pending_calls_[i].first(); task; task = Pending::after(*task)) {
      if (++left > Watchdog::kListed) continue;
      lines += fmt::format("    '{}', task {}\n", task->label(), std::uint64_t{task->sequence});
    }
  }
  if (left == 0) return {};
  if (left > Watchdog::kListed) lines += fmt::format("    and {} more\n", left - Watchdog::kListed);
  return fmt::format("  queue '{}': {} tasks have no place yet, {} have one\n{}", name_, left,
                     running_, lines);
}

std::string Queue::remarks() const {
  std::string lines;
  for (const QueuePlace& queue_place : queue_places_) {
    if (direct_ || completed_.load() == 0 || queue_place.share.tasks + queue_place.tasks > 0)
      continue;
    lines += fmt::format("{}place '{}' has got no task: {}", lines.empty() ? "" : "\n",
                         queue_place.place->name(), why_idle(queue_place));
  }
  return lines;
}

std::string Queue::why_idle(const QueuePlace& queue_place) const {
  const QueuePlace::Bypassed& passed = queue_place.bypassed;
  if (passed.kernel == nullptr) {
    return "none may run there, by its domains, its kernel's code or the bytes of its operands";
  }
  const std::string& to = queue_places_[passed.to].place->name();
  if (passed.run_ns < 0 || passed.elsewhere_ns < 0) {
    return fmt::format("policy '{}' chose others, as '{}' for '{}'", policy_name_, to,
                       passed.kernel->name());
  }
  const char* const from = passed.source == PerformanceModel::Source::measured ? "as measured"
                           : passed.source == PerformanceModel::Source::earlier
                               ? "by times of an earlier queue"
                               : "by times of other sizes";
  return fmt::format("'{}' would take {:.3g} ms there, {}, and {:.3g} ms on '{}'",
                     passed.kernel->name(), static_cast<double>(passed.run_ns) / 1e6, from,
                     static_cast<double>(passed.elsewhere_ns) / 1e6, to);
}

// ---- Ends ---------------------------------------------------------------------------------------

void Queue::remove_pending(Task& task) noexcept {
  pending_list_of(task).remove(task);
  task.pending = false;
  if (task.kind == Task::Kind::call) --waiting_[task.level];
  if (!task.found) return;
  for (PieceUse& use : task.uses()) use.piece()->deferred_as(use.kind()).remove(use.registered());
}

/// Completes a task with a failure that no stream has seen.
void Queue::fail_task(Task& task, Outcome outcome) noexcept {
  const weir_status status = outcome.status;
  std::string label, origin;
  try {
    label = task.label();
    origin = "queue '" + name_ + "'";
  } catch (const std::bad_alloc&) {  // the message must suffice
  }
  Ticket& ticket = *task.ticket;
  ticket.failure = FailureRef::make(status, std::move(outcome.message), std::move(label),
                                    std::move(origin), ticket.id());
  unreported_.add(ticket.failure);
  end_unbound(task, status);
}

/// Completes a task without an action. Its event poisons the tasks that depend on it; if those are
/// unknown, all later tasks are poisoned.
void Queue::end_unbound(Task& task, weir_status status) noexcept {
  task.ticket->status = status;
  if (task.kind == Task::Kind::call && status != WEIR_STATUS_CANCELLED) {
    const bool found = task.found && std::ranges::all_of(task.uses(), [](const PieceUse& use) {
                         return use.piece() != nullptr;
                       });
    if (found) {
      coherence_->note_failed(task.uses(), runtime_.event_of(*task.ticket, task.ticket->id()));
    } else {
      broken_.merge(task.ticket->failure);
      rescan_ = true;
    }
  }
  finish(task);
}

/// A fetch completes after everything before it.
void Queue::finish(Task& task) noexcept {
  if (task.kind == Task::Kind::fetch && live_.first() != &task) {
    task.completion_held = true;
    return;
  }
  close(task);
  while (!live_.empty() && live_.first()->completion_held) close(*live_.first());
}

void Queue::close(Task& task) noexcept {
  live_.remove(task);
  Ticket& ticket = *task.ticket;
  const bool failed = ticket.status != WEIR_STATUS_OK && ticket.status != WEIR_STATUS_CANCELLED;
  if (failed && task.kind == Task::Kind::call &&
      (first_status_ == WEIR_STATUS_OK || task.sequence < first_sequence_)) {
    first_status_ = ticket.status;
    first_failure_ = ticket.failure;
    first_sequence_ = task.sequence;
  }
  task.kept = ticket.failure && runtime_.failures().add(ticket);
  ticket.waiters = ticket.event.close(ticket.id(), ticket.waiters);
  closed_.fetch_add(1);
  if (task.kind == Task::Kind::call) completed_.fetch_add(1);
  task.next = std::exchange(finished_, &task);
}

void Queue::notify_waiters(Task* finished) noexcept {
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
  if (last == nullptr) return;
  const SpinGuard guard(submitting_);
  last->next = std::exchange(spare_, finished);
}

}  // namespace weir::rt
