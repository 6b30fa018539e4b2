#include "core/engine.hpp"

#include <cassert>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

/// Actions behind a barrier are submitted to the device before it completes only if it has at most
/// this many incomplete predecessors: each action behind it waits for all of them.
constexpr std::uint32_t kMaxEarlyReleasePredecessors = 16;

bool completes_without_running(const Action& action) noexcept {
  return !is_handed_out(action.kind) || action.traits.elided || action.failure ||
         action.status != WEIR_STATUS_OK;
}

/// Whether successors of an action that does not run may depend on its predecessors instead, as far
/// as the action is concerned: the device would propagate failures past a clear_poison.
bool may_release_early(const Action& action) noexcept {
  if (action.failure || action.status != WEIR_STATUS_OK) return false;
  return action.kind != ActionKind::clear_poison &&
         (action.kind != ActionKind::barrier || action.pending <= kMaxEarlyReleasePredecessors);
}

}  // namespace

/// Admits an action that is not on the inline fast path.
void Engine::admit_tracked(Action& action) noexcept {
  action.started = false;
  action.successors = {};
  if (action.kind == ActionKind::clear_poison && action.status == WEIR_STATUS_OK)
    action.failure.reset();
  const bool waits_for_front = policy_.waits_for_front(action);
  if (waits_for_front) blocked_ = action.kind != ActionKind::marker;
  try {
    policy_.find_predecessors(action, window_);
    edges_.reserve(policy_.predecessors().size());
    window_.reserve();
    device_.reserve(window_);
  } catch (const std::bad_alloc&) {
    return defer(action);
  }
  policy_.enter(action);
  insert(action);
  if (waits_for_front) {
    complete_front();
  } else {
    resolve(action);
  }
}

/// Enters an action into the window, as a successor of its predecessors.
void Engine::insert(Action& action) noexcept {
  window_.push(action);
  if (device_.active()) device_.enter(action);
  for (const auto& [predecessor, ignores_failure] : policy_.predecessors()) {
    Edge& edge = edges_.take();
    edge = {&action, nullptr, predecessor, nullptr, ignores_failure};
    predecessor->successors.add(edge);
    if (!device_.active()) continue;
    device_.add_predecessor(edge);
    if (ignores_failure) {
      action.host_ordered = true;  // the device would propagate the failure
    } else if (!predecessor->started && predecessor->status != WEIR_STATUS_CANCELLED) {
      poison(action, predecessor->failure);  // of a started action: its worker writes the failure
    }
  }
  action.pending += static_cast<std::uint32_t>(policy_.predecessors().size());
}

/// Hands an action out or completes it, if that is possible now.
void Engine::resolve(Action& action) noexcept {
  if (device_.active()) return resolve_on_device(action);
  if (action.pending > 0) return;
  if (completes_without_running(action)) {
    complete(action);
  } else {
    make_ready(action);
  }
}

/// Hands an action out, or releases its successors early, before its predecessors are complete.
void Engine::resolve_on_device(Action& action) noexcept {
  const DeviceOrdering::Submission& submission = device_.of(action);
  if (action.started) {
    if (submission.executed && action.pending == 0) complete(action);
    return;
  }
  if (submission.queued) return;
  const bool submittable = submission.unsubmitted_predecessors == 0;
  if (!completes_without_running(action)) {
    if (action.host_ordered ? action.pending == 0 : submittable) make_ready(action);
  } else if (action.pending == 0) {
    complete(action);
  } else if (submittable && !submission.submitted && may_release_early(action) &&
             device_.knows_predecessors(action)) {
    release_early(action);
  }
}

void Engine::requeue_host_ordered(Action& action) noexcept {
  assert(action.started && !device_.of(action).submitted);
  action.started = false;
  action.host_ordered = true;
  resolve(action);
}

void Engine::mark_submitted(Action& action, std::uint64_t number) noexcept {
  assert(action.started && number != 0 && device_.of(action).id == 0);
  device_.drop_predecessors(action, edges_);
  device_.of(action).id = number;
  release_early(action);
}

/// Lets successors be submitted before the action completes.
void Engine::release_early(Action& action) noexcept {
  assert(device_.active() && !device_.of(action).submitted);
  device_.of(action).submitted = true;
  action.successors.for_each([this](const Edge& edge) {
    device_.drop_unsubmitted(*edge.successor);
    resolve(*edge.successor);
  });
}

void Engine::make_ready(Action& action) noexcept {
  if (device_.active()) device_.of(action).queued = true;
  ready_.push(action);
}

/// Marks a ready action as started. Returns false if a predecessor has failed since it was ready:
/// it then completes without running.
bool Engine::hand_out(Action& action) noexcept {
  if (device_.active()) {
    device_.of(action).queued = false;
    if (completes_without_running(action)) [[unlikely]] {
      resolve(action);
      return false;
    }
  }
  assert(!action.started && (action.pending == 0 || device_.active()));
  action.started = true;
  return true;
}

/// Defers an action for which there is no memory until all others are complete.
void Engine::defer(Action& action) noexcept {
  assert(deferred_ == nullptr);
  deferred_ = &action;
  if (device_.active()) device_.enter(action);
  resume_deferred();
}

void Engine::resume_deferred() noexcept {
  if (deferred_ == nullptr || !window_.empty() || deferred_->pending > 0) return;
  Action& action = *std::exchange(deferred_, nullptr);
  if (!policy_.has_no_failure()) policy_.inherit(action);
  if (completes_without_running(action)) {
    conclude(action);
    window_.skip(action.sequence());
    finished_.push(action);
    return;
  }
  inline_action_ = &action;
  make_ready(action);
}

void Engine::mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept {
  Action& action = *wait.action;
  assert(wait.submission_id == 0 && number != 0);
  wait.submission_id = number;
  device_.drop_unsubmitted(action);
  if (action.in_window && !policy_.waits_for_front(action)) resolve(action);
}

void Engine::satisfy(EventWait& wait, const FailureRef& failure) noexcept {
  Action& action = *wait.action;
  if (failure && !wait.ignores_failure && action.status == WEIR_STATUS_OK) poison(action, failure);
  if (device_.active() && std::exchange(wait.submission_id, 0) == 0)
    device_.drop_unsubmitted(action);
  assert(action.pending > 0);
  --action.pending;
  if (action.in_window && !policy_.waits_for_front(action)) return resolve(action);
  if (action.in_window) complete_front();
  resume_deferred();
}

/// Takes back an action that is not on the inline fast path.
void Engine::finish_tracked(Action& action) noexcept {
  assert(action.in_window);
  assert(!device_.active() || !device_.of(action).executed);
  if (action.pending == 0) {
    complete(action);
  } else {
    device_.of(action).executed = true;
  }
}

/// Completes an action and those that complete with it, one after the other.
void Engine::complete(Action& action) noexcept {
  assert(action.in_window && action.pending == 0);
  completing_.push(action);
  if (completing_now_) return;
  completing_now_ = true;
  while (Action* const next = completing_.pop()) {
    conclude(*next);
    remove(*next);
    complete_front();
  }
  completing_now_ = false;
  resume_deferred();
}

/// Completes the ordering actions that have become the oldest of the window.
void Engine::complete_front() noexcept {
  for (Action* front = window_.front();
       front != nullptr && policy_.waits_for_front(*front) && front->pending == 0;
       front = window_.front()) {
    conclude(*front);
    remove(*front);
  }
}

void Engine::conclude(Action& action) noexcept {
  if (action.kind != ActionKind::marker && policy_.waits_for_front(action)) blocked_ = false;
  if (!policy_.conclude(action) || !device_.active()) [[likely]]
    return;
  // A cancelled barrier between the two passes no failure on, and actions behind the later barrier
  // must not be submitted as if there were none.
  each_admitted([&](Action& later) {
    if (later.kind != ActionKind::barrier || later.sequence() <= action.sequence()) return;
    poison(later, action.failure);
  });
}

void Engine::remove(Action& action) noexcept {
  assert(action.pending == 0);
  window_.remove(action);
  if (device_.active()) device_.drop_predecessors(action, edges_);
  finished_.push(action);
  release_successors(action);
}

void Engine::release_successors(Action& action) noexcept {
  const bool cancelled = action.status == WEIR_STATUS_CANCELLED;
  const bool poisons = action.failure && !cancelled;
  Successors released = std::exchange(action.successors, {});
  while (Edge* const edge = released.take_first()) {
    Action& successor = *edge->successor;
    if (poisons && !edge->ignores_failure) poison(successor, action.failure);
    if (cancelled && !edge->ignores_failure) {
      poison(successor, policy_.failure_through_operands(successor));  // of earlier actions
    }
    if (device_.active()) poison(successor, policy_.failure_behind(action, edge->ignores_failure));
    if (!device_.active() || device_.remove_predecessor(*edge)) edges_.give(*edge);
    assert(successor.pending > 0);
    --successor.pending;
    resolve(successor);
  }
}

/// Poisons an action and, if its successors were released early, those too.
void Engine::poison(Action& action, const FailureRef& failure) noexcept {
  if (!failure || !action.may_be_poisoned()) return;
  action.failure.merge(failure);
  if (!device_.active() || action.started || !device_.of(action).submitted) return;
  action.successors.for_each([&](const Edge& edge) {
    if (!edge.ignores_failure) poison(*edge.successor, failure);
  });
}

void Engine::cancel(const FailureRef& reason, std::uint64_t until) noexcept {
  each_admitted([&](Action& action) {
    if (action.sequence() > until) return;
    const bool kept = action.started || (device_.active() && device_.of(action).submitted);
    if (kept || action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
    action.status = WEIR_STATUS_CANCELLED;
    action.failure = reason;
  });
  ReadyQueue ready = std::exchange(ready_, {});
  while (Action* const action = ready.pop()) {
    if (!completes_without_running(*action)) {
      ready_.push(*action);
      continue;
    }
    if (device_.active()) device_.of(*action).queued = false;
    if (action != inline_action_) {
      resolve(*action);
    } else if (finish(*action)) {
      finished_.push(*action);
    }
  }
}

}  // namespace weir::rt
