#include "tasks/queue_binder.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "stream/registry.hpp"
#include "stream/stream_report.hpp"

namespace weir::rt {

namespace {

/// Within which the contents that a task uses are expected.
constexpr std::int64_t kSoonNs = 5'000'000;
constexpr std::int64_t kTimedFromNs = 10'000;  ///< shorter tasks are timed by sampling
constexpr std::uint64_t kOneTimedIn = 16;      ///< one shorter task in kOneTimedIn is timed

/// Whether the task writes in place on a device. Similar tasks should then wait for it.
bool changes_in_place(const Task& task) noexcept {
  return std::ranges::any_of(task.uses(), [](const PieceUse& use) {
    return use.reads() && use.writes() && !use.piece()->valid_on_host();
  });
}

}  // namespace

// ---- Deferred tasks -----------------------------------------------------------------------------

void DeferredTasks::add(Task& task) {
  task.pending = true;
  list_of(task).push(task);
  if (task.kind != Task::Kind::call) return;
  ++counts_[task.level];
  found_.clear();
  for (const PieceUse& use : task.uses()) {
    found_.push_back(&pieces_.find(use.buffer(), use.region()));
  }
  for (std::size_t i = 0; i < found_.size(); ++i) {
    PieceUse& use = task.uses()[i];
    use.set_piece(*found_[i], task.sequence);
    found_[i]->deferred_as(use.kind()).push(use.registered());
  }
  task.found = true;
}

void DeferredTasks::remove(Task& task) noexcept {
  assert(task.pending);
  list_of(task).remove(task);
  task.pending = false;
  if (task.kind == Task::Kind::call) --counts_[task.level];
  if (!task.found) return;
  for (PieceUse& use : task.uses()) use.piece()->deferred_as(use.kind()).remove(use.registered());
}

Task* DeferredTasks::first() const noexcept {
  Task* first = accesses_.first();
  for (const List& list : calls_) {
    Task* const task = list.first();
    if (task != nullptr && (first == nullptr || task->sequence < first->sequence)) first = task;
  }
  return first;
}

bool DeferredTasks::depends_on_deferred(const Task& task) const noexcept {
  bool found = false;
  if (task.kind == Task::Kind::fetch) {
    return std::ranges::any_of(calls_, [&](const List& list) {
      return !list.empty() && list.first()->sequence < task.sequence;
    });
  }
  if (task.kind == Task::Kind::access) {
    const PieceUse& use = task.uses().front();
    pieces_.each_overlapping(use.buffer(), use.region(), [&](const Piece& piece) {
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

// ---- The choice of a place
// -----------------------------------------------------------------------

PlaceChooser::PlaceChooser(const QueueProperties& properties, const weir_queue_options& options,
                           QueuePlaces& places, Coherence& coherence,
                           std::unique_ptr<Policy> policy)
    : properties_(properties),
      queue_places_(places.all()),
      coherence_(coherence),
      policy_(std::move(policy)) {
  if (properties_.keeps_models) models_.load_cached(properties_.registry.machine_name());
  if (options.weight_count > 0) return;
  std::vector<std::string> kinds;
  for (const QueuePlace& queue_place : queue_places_) kinds.push_back(queue_place.kind);
  const std::vector<double> speeds = models_.speeds(kinds);
  for (std::size_t i = 0; i < speeds.size(); ++i) queue_places_[i].weight *= speeds[i];
}

void PlaceChooser::store_models() const noexcept {
  if (!properties_.keeps_models) return;
  try {
    models_.store_cached(properties_.registry.machine_name());
  } catch (...) {
    log::warning("queue '{}' found no memory to keep its models", properties_.name);
  }
}

void PlaceChooser::begin_pass(std::int64_t now_ns) noexcept {
  now_ns_ = now_ns;
  coherence_.set_now(now_ns);
  for (QueuePlace& queue_place : queue_places_) queue_place.claimed = queue_place.claimed_ns = 0;
}

PlaceChooser::Choice PlaceChooser::choose(const Task& task, std::int64_t claims) {
  candidates_.clear();
  candidate_places_.clear();
  estimates_.clear();
  const std::uint64_t bytes = task.bytes();
  for (QueuePlace& queue_place : queue_places_) {
    if ((task.allowed_places >> queue_place.index & 1) != 0)
      add_candidate(task, bytes, queue_place);
  }
  const std::size_t chosen = policy_->choose(task.label(), candidates_, estimates_);
  if (chosen == WEIR_POLICY_LATER) return {.by_policy = true};
  if (chosen >= candidates_.size()) {
    fail_argument("policy '{}' chose candidate {} of {} for task '{}'", properties_.policy, chosen,
                  candidates_.size(), task.label());
  }
  const weir_candidate& candidate = candidates_[chosen];
  QueuePlace& queue_place = *candidate_places_[chosen];
  if (candidate.full) {
    queue_place.claim(*task.kernel, changes_in_place(task) ? 1 : claims,
                      std::max<std::int64_t>(candidate.run_ns, 0),
                      now_ns_ + candidate.ready_ns + candidate.transfer_ns);
    return {};
  }
  const std::int64_t arrival_ns = candidate.ready_ns + candidate.transfer_ns;
  note_bypassed(task, chosen);
  const bool measured = estimates_[chosen].source == PerformanceModel::Source::measured;
  return {.queue_place = &queue_place,
          .arrival_ns = now_ns_ + arrival_ns,
          .start_ns = now_ns_ + std::max(candidate.free_ns, arrival_ns),
          .run_ns = candidate.run_ns,
          .unsure = !measured,
          .bytes = bytes};
}

/// Records, for remarks(), a task that idle places could have run.
void PlaceChooser::note_bypassed(const Task& task, std::size_t chosen) noexcept {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    QueuePlace& queue_place = *candidate_places_[i];
    if (i == chosen || queue_place.share.tasks + queue_place.tasks > 0) continue;
    const bool known = queue_place.bypassed.kernel != nullptr && queue_place.bypassed.run_ns >= 0;
    if (known || (queue_place.bypassed.kernel != nullptr && candidates_[i].run_ns < 0)) continue;
    queue_place.bypassed = {task.kernel, candidates_[i].run_ns, candidates_[chosen].run_ns,
                            estimates_[i].source, candidate_places_[chosen]->index};
  }
}

void PlaceChooser::add_candidate(const Task& task, std::uint64_t bytes, QueuePlace& queue_place) {
  const ArrivalEstimate arrival = coherence_.arrival_in(queue_place, task.uses());
  weir_candidate candidate{};
  candidate.place = queue_place.place;
  candidate.cores = task.kernel->parallel() ? 1 : queue_place.place->width();
  candidate.tasks = queue_place.tasks;
  candidate.full = queue_place.saturated;
  candidate.weight = queue_place.weight;
  candidate.free_ns = queue_place.expected_free_ns(*task.kernel, now_ns_);
  candidate.missing_bytes = arrival.missing_bytes;
  candidate.ready_ns = std::max<std::int64_t>(0, arrival.value_ns - now_ns_);
  candidate.transfer_ns =
      std::max<std::int64_t>(0, arrival.ready_ns - now_ns_ - candidate.ready_ns);
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
                        times.curve->source(bytes), arrival.largest});
}

PlaceChooser::Times& PlaceChooser::times_of(const Task& task, const QueuePlace& queue_place) {
  const std::size_t kernel = task.kernel->number();
  if (kernel >= bound_.size()) bound_.resize(kernel + 1);
  const std::size_t at = kernel * queue_places_.size() + queue_place.index;
  if (at >= times_.size()) times_.resize(bound_.size() * queue_places_.size());
  Times& times = times_[at];
  if (times.curve == nullptr) times.curve = &models_.curve(task.kernel->name(), queue_place.kind);
  return times;
}

void PlaceChooser::note_bound(const Task& task, const QueuePlace& queue_place) {
  times_of(task, queue_place).bound_before = ++bound_[task.kernel->number()];
}

void PlaceChooser::note_run(const Task& task, const QueuePlace& queue_place, std::uint64_t bytes,
                            std::int64_t run_ns) noexcept {
  try {
    times_of(task, queue_place).curve->note(bytes, run_ns);
  } catch (const std::bad_alloc&) {  // without memory this time is not recorded
  }
}

std::string PlaceChooser::remarks() const {
  std::string lines;
  for (const QueuePlace& queue_place : queue_places_) {
    if (queue_place.share.tasks + queue_place.tasks > 0) continue;
    lines += fmt::format("{}place '{}' has got no task: {}", lines.empty() ? "" : "\n",
                         queue_place.place->name(), why_idle(queue_place));
  }
  return lines;
}

std::string PlaceChooser::why_idle(const QueuePlace& queue_place) const {
  const QueuePlace::Bypassed& passed = queue_place.bypassed;
  if (passed.kernel == nullptr) {
    return "none may run there, by its domains, its kernel's code or the bytes of its operands";
  }
  const std::string& to = queue_places_[passed.to].place->name();
  if (passed.run_ns < 0 || passed.elsewhere_ns < 0) {
    return fmt::format("policy '{}' chose others, as '{}' for '{}'", properties_.policy, to,
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

// ---- Arrivals -----------------------------------------------------------------------------------

TaskBinder::TaskBinder(const QueueProperties& properties, const weir_queue_options& options,
                       QueuePlaces& places, std::unique_ptr<Policy> policy,
                       SubmissionQueue& submissions, BoundTasks& bound, Unreported& unreported,
                       const CombiningLock& lock)
    : properties_(properties),
      queue_places_(places.all()),
      bound_(bound),
      unreported_(unreported),
      cancelled_until_(submissions.cancelled_until()),
      lock_(lock),
      coherence_(properties.registry, queue_places_),
      chooser_(properties, options, places, coherence_, std::move(policy)),
      deferred_(coherence_.pieces()),
      live_(properties.registry, submissions) {}

void TaskBinder::take_completed(BoundTask* list) noexcept {
  assert(lock_.state() == CombiningLock::State::binding);
  while (list != nullptr) {
    BoundTask& bound = *std::exchange(list, list->next);
    Task& task = *bound.task;
    if (task.kind == Task::Kind::call) note_run(bound);
    bound_.give(bound);
    assert(running_ > 0);
    --running_;
    rescan_ = rescan_ || policy_deferred_;
    live_.finish(task);
  }
}

/// Updates the times and the load of a place after a call has completed.
void TaskBinder::note_run(const BoundTask& bound) noexcept {
  const Task& task = *bound.task;
  QueuePlace& queue_place = queue_places_[bound.queue_place];
  count_in(queue_place, bound, -1);
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
  chooser_.note_run(task, queue_place, bound.bytes, bound.run_ns);
}

void TaskBinder::take_submitted(Task* list) noexcept {
  assert(lock_.state() == CombiningLock::State::binding);
  while (list != nullptr) {
    Task& task = *std::exchange(list, list->next);
    rescan_ = rescan_ || task.kind != Task::Kind::call || deferred_.calls() < kLookahead;
    task.completion_held = task.kept = false;
    live_.add(task);
    try {
      deferred_.add(task);
    } catch (...) {
      deferred_.remove(task);
      fail_task(task, current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY));
    }
  }
}

// ---- Which task ---------------------------------------------------------------------------------

bool TaskBinder::bind_ready() noexcept {
  rescan_ = rescan_ || running_ == 0 || cancelled_ != cancelled_until_.load();
  while (std::exchange(rescan_, false)) {
    policy_deferred_ = false;
    cancelled_ = cancelled_until_.load();
    rescan_ = bind_pass();
  }
  Task* const first = running_ == 0 ? deferred_.first() : nullptr;
  if (first == nullptr) return false;
  deferred_.remove(*first);
  try {
    fail_argument(
        "policy '{}' deferred task '{}' while nothing was running: no place would ever take it",
        properties_.policy, first->label());
  } catch (...) {
    fail_task(*first, current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY));
  }
  return true;
}

/// Binds tasks, high priority first. Returns whether another pass may bind more.
bool TaskBinder::bind_pass() noexcept {
  chooser_.begin_pass(properties_.registry.now_ns());
  bind_accesses();
  bool again = false;
  std::uint64_t higher = 0;
  for (std::size_t level = 3; level-- > 0;) {
    const std::uint64_t before = deferred_.calls(level);
    if (before > 0 && bind_calls(level)) again = true;
    if (deferred_.calls(level) < before) {
      bind_accesses();
      again = again || higher > 0;
    }
    higher += deferred_.calls(level);
  }
  return again;
}

/// Accesses by the program are bound in order; no later task passes them.
void TaskBinder::bind_accesses() noexcept {
  while (Task* const access = deferred_.first_access()) {
    if (deferred_.depends_on_deferred(*access)) return;
    bind(*access);
  }
}

/// Examines the deferred tasks of a level in order, up to the limits, and binds those that it can.
/// Returns whether examining them again may bind more.
bool TaskBinder::bind_calls(std::size_t level) noexcept {
  const std::int64_t soon_ns = chooser_.pass_began_ns() + kSoonNs;
  const auto is_late = [soon_ns](const PieceUse& use) { return use.piece()->ready_ns > soon_ns; };
  std::size_t looked = 0, offered = 0, bound = 0;
  Task* task = deferred_.first_call(level);
  for (; task != nullptr && looked < kMostSkipped && offered < kLookahead; ++looked) {
    Task& current = *std::exchange(task, DeferredTasks::List::after(*task));
    const Task* const access = deferred_.first_access();
    if (access != nullptr && access->sequence < current.sequence) break;
    if (saturated_places_ == queue_places_.size() && !is_cancelled(current)) break;
    if (deferred_.depends_on_deferred(current)) continue;
    if (chooser_.wants_ready_tasks() && std::ranges::any_of(current.uses(), is_late)) {
      policy_deferred_ = true;
      continue;
    }
    ++offered;
    if (bind(current)) ++bound;
  }
  const bool more = offered == kLookahead && task != nullptr;
  const auto each = static_cast<std::int64_t>(deferred_.calls(level) / kLookahead);
  claims_[level] = more ? std::max<std::int64_t>(1, each) : 1;
  return bound > 0 && task != nullptr;
}

bool TaskBinder::is_cancelled(const Task& task) const noexcept {
  return task.kind == Task::Kind::call && task.sequence <= cancelled_until_.load();
}

// ---- Which place --------------------------------------------------------------------------------

/// Binds the task if possible. Returns whether it is no longer deferred.
bool TaskBinder::bind(Task& task) noexcept {
  try {
    if (task.kind != Task::Kind::call) {
      deferred_.remove(task);
      ++running_;
      std::vector<weir_event> waits;
      std::size_t ignoring_failure = 0;
      if (task.kind == Task::Kind::fetch) {
        coherence_.fetch_all(waits);
      } else {
        const PieceUse& use = task.uses().front();
        ignoring_failure = coherence_.fetch(use.buffer(), use.region(), use.writes(), waits);
      }
      bound_.await(task, waits, ignoring_failure);
      return true;
    }
    if (is_cancelled(task)) {
      deferred_.remove(task);
      fail_task(task, {WEIR_STATUS_CANCELLED, "the queue was cancelled"});
      return true;
    }
    if (live_.poison) {
      deferred_.remove(task);
      task.ticket->failure = live_.poison;
      end_unbound(task, WEIR_STATUS_POISONED);
      return true;
    }
    const Choice choice = chooser_.choose(task, claims_[task.level]);
    policy_deferred_ = policy_deferred_ || choice.by_policy;
    if (choice.queue_place == nullptr) return false;
    deferred_.remove(task);
    ++running_;
    bind_call(task, choice);
  } catch (...) {
    if (task.pending) {
      deferred_.remove(task);
    } else {
      --running_;
    }
    fail_task(task, current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  return true;
}

void TaskBinder::bind_call(Task& task, const Choice& choice) {
  QueuePlace& queue_place = *choice.queue_place;
  coherence_.prepare(queue_place, task.uses(), task.sequence, operands_, waits_);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = task.kernel;
  compute.operands = operands_.data();
  compute.operand_count = operands_.size();
  compute.scalars = task.scalars().data();
  compute.scalar_count = task.scalars().size();
  compute.name = task.has_name() ? task.label() : nullptr;
  chooser_.note_bound(task, queue_place);
  BoundTask& bound = bound_.take(task);
  bound.queue_place = queue_place.index;
  bound.bytes = choice.bytes;
  bound.timed = choice.unsure || choice.run_ns >= kTimedFromNs || task.sequence % kOneTimedIn == 0;
  bound.unmeasured = choice.run_ns < 0;
  bound.estimate_ns = std::max<std::int64_t>(choice.run_ns, 0);
  for (const PieceUse& use : task.uses()) {
    if (!use.writes()) continue;
    use.piece()->ready_ns = choice.start_ns + bound.estimate_ns;
    use.piece()->writer_sequence = task.sequence;
  }
  queue_place.occupy(*task.kernel, choice.arrival_ns, bound.estimate_ns);
  count_in(queue_place, bound, 1);  // before the task can complete
  try {
    const weir_event event =
        queue_place.stream->compute_after(compute, waits_, bound, task.sequence, bound.timed);
    coherence_.note(queue_place, task.uses(), event);
  } catch (...) {
    count_in(queue_place, bound, -1);
    bound_.give(bound);
    throw;
  }
}

/// Adds 1 or -1 tasks like this one to the load of its place. Each time a place is no longer
/// saturated, another pass examines all deferred tasks.
void TaskBinder::count_in(QueuePlace& queue_place, const BoundTask& bound, int count) noexcept {
  const std::int64_t cores = count * queue_place.cores_of(*bound.task->kernel);
  queue_place.tasks += static_cast<std::uint64_t>(count);
  queue_place.load += static_cast<std::uint64_t>(cores);
  queue_place.backlog_ns += cores * bound.estimate_ns;
  if (bound.unmeasured) queue_place.unmeasured += static_cast<std::uint64_t>(count);
  const bool was_saturated = queue_place.saturated;
  queue_place.saturated = queue_place.has_enough();
  if (queue_place.saturated && !was_saturated) ++saturated_places_;
  if (!queue_place.saturated && was_saturated) {
    --saturated_places_;
    rescan_ = true;
  }
}

// ---- Tasks that end without a place -------------------------------------------------------------

/// Completes a task with a failure that no stream has seen.
void TaskBinder::fail_task(Task& task, Outcome outcome) noexcept {
  const weir_status status = outcome.status;
  std::string label, origin;
  try {
    label = task.label();
    origin = "queue '" + properties_.name + "'";
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
void TaskBinder::end_unbound(Task& task, weir_status status) noexcept {
  task.ticket->status = status;
  if (task.kind == Task::Kind::call && status != WEIR_STATUS_CANCELLED) {
    const bool found = task.found && std::ranges::all_of(task.uses(), [](const PieceUse& use) {
                         return use.piece() != nullptr;
                       });
    if (found) {
      coherence_.note_failed(task.uses(),
                             properties_.registry.event_of(*task.ticket, task.ticket->id()));
    } else {
      live_.poison.merge(task.ticket->failure);
      rescan_ = true;
    }
  }
  live_.finish(task);
}

// ---- Others -------------------------------------------------------------------------------------

std::string TaskBinder::describe_deferred() const {
  std::string lines;
  std::uint64_t count = 0;
  for (std::size_t level = 3; level-- > 0;) {
    const Task* task = deferred_.first_call(level);
    for (; task != nullptr; task = DeferredTasks::List::after(*task)) {
      if (++count > StreamReport::kMostLines) continue;
      lines += fmt::format("    '{}', task {}\n", task->label(), std::uint64_t{task->sequence});
    }
  }
  if (count == 0) return {};
  if (count > StreamReport::kMostLines)
    lines += fmt::format("    and {} more\n", count - StreamReport::kMostLines);
  return fmt::format("  queue '{}': {} tasks have no place yet, {} have one\n{}", properties_.name,
                     count, running_, lines);
}

}  // namespace weir::rt
