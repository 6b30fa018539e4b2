#include "core/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

/// Actions behind a barrier are submitted to the device before it completes only if it has at most
/// this many incomplete predecessors: each action behind it waits for all of them.
constexpr std::uint32_t kMaxEarlyReleasePredecessors = 16;

bool orders_stream(ActionKind kind) noexcept {
  return kind == ActionKind::barrier || kind == ActionKind::drain || kind == ActionKind::marker;
}

bool runs(ActionKind kind) noexcept {
  return kind == ActionKind::compute || kind == ActionKind::transfer;
}

/// Whether the failure of a predecessor poisons the action: it has no other outcome yet.
bool may_be_poisoned(const Action& action) noexcept {
  if (action.kind == ActionKind::clear_poison) return false;
  return action.status == WEIR_STATUS_OK || action.status == WEIR_STATUS_POISONED;
}

/// Whether the failure of an action reaches one of its successors.
bool propagates_failure(const Action& action) noexcept {
  bool passes = false;
  action.successors.for_each([&](const Edge& edge) {
    passes = passes || (!edge.ignores_failure && may_be_poisoned(*edge.successor));
  });
  return passes;
}

/// Whether the action completes without running.
bool completes_without_running(const Action& action) noexcept {
  return !runs(action.kind) || action.elided || action.failure || action.status != WEIR_STATUS_OK;
}

}  // namespace

Engine::~Engine() = default;

void Engine::Window::reserve() {
  if (high_ - low_ < ring_.size()) return;
  std::vector<Action*> bigger(std::max<std::size_t>(64, 2 * ring_.size()), nullptr);
  std::vector<Submission> bigger_early(device_ordered_ ? bigger.size() : 0);
  const std::uint64_t mask = bigger.size() - 1;
  for (std::uint64_t at = low_; at < high_; ++at) {
    bigger[at & mask] = ring_[at & mask_];
    if (device_ordered_) bigger_early[at & mask] = submissions_[at & mask_];
  }
  ring_ = std::move(bigger);
  submissions_ = std::move(bigger_early);
  mask_ = mask;
}

void Engine::Window::push(Action& action) noexcept {
  if (device_ordered_) submissions_[high_ & mask_] = {};
  ring_[high_++ & mask_] = &action;
  action.in_window = true;
}

void Engine::Window::remove(const Action& action) noexcept {
  ring_[action.sequence() & mask_] = nullptr;
  while (low_ < high_ && ring_[low_ & mask_] == nullptr) ++low_;
}

void Engine::EdgePool::reserve(std::size_t count) {
  constexpr std::size_t kChunk = 256;
  while (free_count_ < count) {
    chunks_.reserve(chunks_.size() + 1);
    auto& chunk = chunks_.emplace_back(std::make_unique<Edge[]>(kChunk));
    for (std::size_t i = 0; i < kChunk; ++i) give(chunk[i]);
  }
}

Edge& Engine::EdgePool::take() noexcept {
  --free_count_;
  return *std::exchange(free_, free_->next);
}

void Engine::EdgePool::give(Edge& edge) noexcept {
  ++free_count_;
  edge.next = std::exchange(free_, &edge);
}

bool Engine::admit(Action& action, bool may_run_inline) noexcept {
  action.in_window = false;
  action.started = may_run_inline;
  if (may_run_inline && window_.empty() && has_no_failure() && action.status == WEIR_STATUS_OK)
      [[likely]] {
    inline_action_ = &action;
    return true;
  }
  action.started = false;
  action.successors = {};
  if (action.kind == ActionKind::clear_poison && action.status == WEIR_STATUS_OK)
    action.failure.reset();
  if (waits_for_front(action)) {
    admit_ordering(action);
    return false;
  }
  predecessors_.clear();
  try {
    if (action.kind == ActionKind::barrier) {
      admit_barrier(action);
    } else if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
      admit_fifo(action);
    } else if (tracks_operands() && action.status == WEIR_STATUS_OK) {
      admit_tracked(action);
    } else {
      follow_barrier(is_unordered());
      edges_.reserve(predecessors_.size());
      window_.reserve();
    }
  } catch (const std::bad_alloc&) {
    defer(action);
    return false;
  }
  enter(action);
  connect(action);
  resolve(action);
  return false;
}

void Engine::admit_ordering(Action& action) noexcept {
  blocked_ = action.kind != ActionKind::marker;
  try {
    window_.reserve();
  } catch (const std::bad_alloc&) {
    defer(action);
    return;
  }
  enter(action);
  complete_front();
}

/// Admits a barrier under device ordering: it depends on everything incomplete, and everything
/// later depends on it.
void Engine::admit_barrier(Action& action) {
  const std::uint64_t first = std::max(window_.low(), last_barrier_ + 1);
  for (std::uint64_t at = first; at < window_.high(); ++at) {
    Action* const earlier = window_.at(at);
    if (earlier == nullptr || propagates_failure(*earlier)) continue;
    predecessors_.push_back({earlier, earlier->kind == ActionKind::marker});
  }
  if (predecessors_.empty()) follow_barrier(false);
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
  last_barrier_ = last_fifo_ = action.sequence();
}

/// Makes the last barrier, if it is incomplete, a predecessor of the action to be admitted.
void Engine::follow_barrier(bool ignores_failure) {
  Action* const barrier = window_.at(last_barrier_);
  if (barrier != nullptr) predecessors_.push_back({barrier, ignores_failure});
}

void Engine::admit_tracked(Action& action) {
  FailureRef poison = action.failure;
  const auto matters = [this](std::uint64_t sequence) { return in_flight(sequence); };
  table_.trim(matters);
  table_.collect(
      action, matters,
      [this](std::uint64_t sequence, bool ignores_failure) {
        if (Action* const earlier = window_.at(sequence)) {
          predecessors_.push_back({earlier, ignores_failure || earlier->non_ordering});
        }
      },
      poison);
  follow_barrier(false);
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.kind == ActionKind::clear_poison || action.clears_poison)
    table_.clear_poison_of(action);
  if (action.kind != ActionKind::clear_poison) {
    poison.merge(poison_all_);
    action.failure = std::move(poison);
  }
  table_.enter(action);
}

/// Admits the action with the one before it as predecessor.
void Engine::admit_fifo(Action& action) {
  if (Action* const last = window_.at(last_fifo_)) predecessors_.push_back({last, false});
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
  last_fifo_ = action.sequence();
}

void Engine::enter(Action& action) noexcept {
  window_.push(action);
  if (device_ordered_)
    submission_of(action).unsubmitted_predecessors = count_unsubmitted_events(action);
}

/// Counts the incomplete events of the action without a submission id.
std::uint32_t Engine::count_unsubmitted_events(Action& action) noexcept {
  std::uint32_t unknown = action.pending;
  for (const EventWait& wait : action.events()) unknown -= wait.submission_id != 0 ? 1 : 0;
  return unknown;
}

/// Makes the action a successor of its predecessors.
void Engine::connect(Action& action) noexcept {
  for (const auto& [predecessor, ignores_failure] : predecessors_) {
    Edge& edge = edges_.take();
    edge = {&action, nullptr, predecessor, nullptr, ignores_failure};
    predecessor->successors.add(edge);
    if (!device_ordered_) continue;
    note_wait(action, edge);
    action.host_ordered =
        action.host_ordered || ignores_failure;  // the device would propagate the failure
  }
  action.pending += static_cast<std::uint32_t>(predecessors_.size());
}

void Engine::note_wait(Action& action, Edge& edge) noexcept {
  const Action& predecessor = *edge.predecessor;
  Submission& early = submission_of(action);
  edge.next_predecessor = std::exchange(early.predecessors, &edge);
  if (!submission_of(predecessor).submitted) ++early.unsubmitted_predecessors;
  // The thread that runs a started action writes its failure.
  if (predecessor.started || predecessor.status == WEIR_STATUS_CANCELLED || edge.ignores_failure)
    return;
  poison(action, predecessor.failure);
}

void Engine::resolve(Action& action) noexcept {
  if (device_ordered_) return resolve_on_device(action);
  if (action.pending > 0) return;
  if (completes_without_running(action)) {
    complete(action);
  } else {
    make_ready(action);
  }
}

/// Hands an action out, or releases its successors early, before its predecessors are complete.
void Engine::resolve_on_device(Action& action) noexcept {
  const Submission& early = submission_of(action);
  if (early.queued || action.started) return;
  if (!completes_without_running(action)) {
    if ((action.host_ordered ? action.pending : early.unsubmitted_predecessors) == 0)
      make_ready(action);
  } else if (action.pending == 0) {
    complete(action);
  } else if (early.unsubmitted_predecessors == 0 && !early.submitted && may_release_early(action)) {
    release_early(action);
  }
}

/// Whether successors of an action that does not run may depend on its predecessors instead: each
/// of these has been submitted or is complete.
bool Engine::may_release_early(const Action& action) const noexcept {
  if (action.failure || action.status != WEIR_STATUS_OK) return false;
  if (action.kind == ActionKind::clear_poison)
    return false;  // the device would propagate failures past it
  if (action.kind == ActionKind::barrier && action.pending > kMaxEarlyReleasePredecessors)
    return false;
  for (const Edge* edge = submission_of(action).predecessors; edge != nullptr;
       edge = edge->next_predecessor) {
    if (edge->predecessor != nullptr && submission_of(*edge->predecessor).id == 0) return false;
  }
  return true;
}

void Engine::requeue_host_ordered(Action& action) noexcept {
  action.started = false;
  action.host_ordered = true;
  resolve(action);
}

void Engine::mark_submitted(Action& action, std::uint64_t number) noexcept {
  drop_waits(action);
  submission_of(action).id = number;
  release_early(action);
}

/// Lets successors be submitted before the action completes.
void Engine::release_early(Action& action) noexcept {
  submission_of(action).submitted = true;
  action.successors.for_each([this](const Edge& edge) {
    --submission_of(*edge.successor).unsubmitted_predecessors;
    resolve(*edge.successor);
  });
}

/// Removes the action's list of predecessors, which it no longer needs, and frees the edges whose
/// predecessors are complete.
void Engine::drop_waits(Action& action) noexcept {
  for (Edge* edge = std::exchange(submission_of(action).predecessors, nullptr); edge != nullptr;) {
    Edge* const next = edge->next_predecessor;
    if (edge->predecessor == nullptr) {
      edges_.give(*edge);
    } else {
      edge->next_predecessor = edge;  // marked: frees itself with its predecessor
    }
    edge = next;
  }
}

void Engine::make_ready(Action& action) noexcept {
  if (device_ordered_) submission_of(action).queued = true;
  (action.kind == ActionKind::transfer ? ready_transfers_ : ready_computes_[action.priority_class])
      .push(action);
}

Action* Engine::pop_ready(ActionList& list) noexcept {
  while (Action* const action = list.pop()) {
    if (device_ordered_) {
      submission_of(*action).queued = false;
      if (completes_without_running(*action)) [[unlikely]] {  // a predecessor has failed since
        resolve(*action);
        continue;
      }
    }
    action->started = true;
    return action;
  }
  return nullptr;
}

/// Defers an action for which there is no memory until all others are complete.
void Engine::defer(Action& action) noexcept {
  deferred_ = &action;
  inline_submission_ = {};
  if (device_ordered_)
    inline_submission_.unsubmitted_predecessors = count_unsubmitted_events(action);
  resume_deferred();
}

/// Gives a deferred action the failures that it would have inherited if it had been tracked.
void Engine::inherit_failures(Action& action) noexcept {
  if (action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
  if (action.kind == ActionKind::clear_poison) return table_.clear_poison_of(action);
  if (tracks_operands()) {
    table_.find_poison(action, action.failure);
    if (action.clears_poison) table_.clear_poison_of(action);
    action.failure.merge(poison_all_);
  } else if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
    action.failure.merge(first_failure_);
  }
}

void Engine::resume_deferred() noexcept {
  if (deferred_ == nullptr || !window_.empty() || deferred_->pending > 0) return;
  Action& action = *std::exchange(deferred_, nullptr);
  if (!has_no_failure()) inherit_failures(action);
  if (completes_without_running(action)) {
    complete_unrun(action);
    window_.skip(action.sequence());
    finished_.push(action);
    return;
  }
  inline_action_ = &action;
  make_ready(action);
}

void Engine::mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept {
  Action& action = *wait.action;
  wait.submission_id = number;
  --submission_of(action).unsubmitted_predecessors;
  if (action.in_window && !waits_for_front(action)) resolve(action);
}

void Engine::satisfy(EventWait& wait, const FailureRef& failure) noexcept {
  Action& action = *wait.action;
  if (failure && !wait.ignores_failure && action.status == WEIR_STATUS_OK) poison(action, failure);
  if (device_ordered_ && std::exchange(wait.submission_id, 0) == 0)
    --submission_of(action).unsubmitted_predecessors;
  if (--action.pending > 0) {
    if (device_ordered_ && action.in_window && !waits_for_front(action)) resolve(action);
    return;
  }
  if (!action.in_window) {
    resume_deferred();
  } else if (waits_for_front(action)) {
    complete_front();
    resume_deferred();
  } else if (device_ordered_ && submission_of(action).executed) {
    complete(action);
  } else {
    resolve(action);
  }
}

bool Engine::finish(Action& action) noexcept {
  if (&action != inline_action_) {
    if (action.pending == 0) {
      complete(action);
    } else {
      submission_of(action).executed = true;
    }
    return false;
  }
  inline_action_ = nullptr;
  window_.skip(action.sequence());
  if (action.status != WEIR_STATUS_OK) [[unlikely]]
    note_failure(action);
  return true;
}

void Engine::complete(Action& action) noexcept {
  completing_.push(action);
  if (completing_now_) return;
  completing_now_ = true;
  while (Action* const next = completing_.pop()) complete_one(*next);
  completing_now_ = false;
  resume_deferred();
}

void Engine::complete_unrun(Action& action) noexcept {
  if (orders_stream(action.kind)) {
    complete_ordering(action);
  } else if (action.failure) [[unlikely]] {
    if (action.status == WEIR_STATUS_OK) action.status = WEIR_STATUS_POISONED;
    note_failure(action);
  }
}

void Engine::complete_one(Action& action) noexcept {
  complete_unrun(action);
  window_.remove(action);
  if (device_ordered_) drop_waits(action);
  release_successors(action);
  finished_.push(action);
  complete_front();
}

void Engine::release_successors(Action& action) noexcept {
  const bool cancelled = action.status == WEIR_STATUS_CANCELLED;
  const bool poisons = action.failure && !cancelled;
  Successors released = std::exchange(action.successors, {});
  while (Edge* const edge = released.take_first()) {
    Action& successor = *edge->successor;
    if (poisons && !edge->ignores_failure) poison(successor, action.failure);
    if (cancelled && !edge->ignores_failure) inherit_past_cancelled(successor);
    if (device_ordered_) {
      // Beyond cancelled predecessors: in FIFO order each failure poisons all later actions, and
      // the failure of a barrier those behind a later barrier.
      if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
        poison(successor, first_failure_);
      } else if (action.kind == ActionKind::barrier && !edge->ignores_failure) {
        poison(successor, poison_all_);
      }
      release_on_device(*edge);
      continue;
    }
    if (--successor.pending == 0) resolve(successor);
    edges_.give(*edge);
  }
}

/// Gives the successor of a cancelled action the failures of the actions before that one.
void Engine::inherit_past_cancelled(Action& action) noexcept {
  if (!table_.poisoned() || !may_be_poisoned(action)) return;
  FailureRef failure;
  table_.find_poison(action, failure);
  poison(action, failure);
}

/// Poisons an action and, if its successors were released early, those too.
void Engine::poison(Action& action, const FailureRef& failure) noexcept {
  if (!failure || !may_be_poisoned(action)) return;
  action.failure.merge(failure);
  if (!device_ordered_ || action.started || !submission_of(action).submitted) return;
  action.successors.for_each([&](const Edge& edge) {
    if (!edge.ignores_failure) poison(*edge.successor, failure);
  });
}

void Engine::release_on_device(Edge& edge) noexcept {
  Action& successor = *edge.successor;
  if (!submission_of(*edge.predecessor).submitted)
    --submission_of(successor).unsubmitted_predecessors;
  --successor.pending;
  if (edge.next_predecessor == &edge) {
    edges_.give(edge);
  } else {
    edge.predecessor = nullptr;
  }
  if (!successor.started) {
    resolve(successor);
  } else if (submission_of(successor).executed && successor.pending == 0) {
    complete(successor);
  }
}

/// Whether the action completes when it becomes the oldest of the window.
bool Engine::waits_for_front(const Action& action) const noexcept {
  return orders_stream(action.kind) && !(device_ordered_ && action.kind == ActionKind::barrier);
}

void Engine::complete_front() noexcept {
  for (Action* front = window_.front();
       front != nullptr && waits_for_front(*front) && front->pending == 0;
       front = window_.front()) {
    complete_ordering(*front);
    window_.remove(*front);
    finished_.push(*front);
    release_successors(*front);
  }
}

void Engine::complete_ordering(Action& action) noexcept {
  if (action.kind != ActionKind::marker && waits_for_front(action)) blocked_ = false;
  if (action.kind == ActionKind::drain) {
    if (!action.decide_fate(action.id(), DrainFate::reported)) {
      action.status = first_status_;
      action.failure = first_failure_;
      return;
    }
    action.status = std::exchange(first_status_, WEIR_STATUS_OK);
    action.failure = std::exchange(first_failure_, {});
    poison_all_.reset();
    table_.clear_poison();
    return;
  }
  if (action.status != WEIR_STATUS_OK) return;
  // Actions after a marker may have failed already.
  if (first_sequence_ < action.sequence()) action.failure.merge(first_failure_);
  if (!action.failure) return;
  action.status = WEIR_STATUS_POISONED;
  if (action.kind == ActionKind::barrier) note_failure(action);
}

void Engine::note_failure(Action& action) noexcept {
  if (action.status == WEIR_STATUS_CANCELLED) return;
  if (!first_failure_ || action.sequence() < first_sequence_) {
    first_failure_ = action.failure;
    first_status_ = action.status;
    first_sequence_ = action.sequence();
  }
  if (action.kind == ActionKind::barrier || policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
    poison_all_.merge(action.failure);
    return;
  }
  if (!tracks_operands() || action.non_ordering) return;
  try {
    table_.poison(action, action.failure);
  } catch (const std::bad_alloc&) {
    poison_all_.merge(action.failure);
  }
}

void Engine::cancel(const FailureRef& reason, std::uint64_t until) noexcept {
  each_admitted([&](Action& action) {
    if (action.sequence() > until) return;
    const bool gone = action.started || (device_ordered_ && submission_of(action).submitted);
    if (gone || action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
    action.status = WEIR_STATUS_CANCELLED;
    action.failure = reason;
  });
  complete_cancelled(ready_transfers_);
  for (ActionList& list : ready_computes_) complete_cancelled(list);
}

void Engine::complete_cancelled(ActionList& list) noexcept {
  ActionList ready = std::exchange(list, {});
  while (Action* const action = ready.pop()) {
    if (!completes_without_running(*action)) {
      list.push(*action);
      continue;
    }
    if (device_ordered_) submission_of(*action).queued = false;
    if (action != inline_action_) {
      resolve(*action);
    } else if (finish(*action)) {
      finished_.push(*action);
    }
  }
}

}  // namespace weir::rt
