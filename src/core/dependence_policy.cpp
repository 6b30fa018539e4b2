#include "core/dependence_policy.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

/// Whether the failure of an action reaches one of its successors.
bool propagates_failure(const Action& action) noexcept {
  bool passes = false;
  action.successors.for_each([&](const Edge& edge) {
    passes = passes || (!edge.ignores_failure && edge.successor->may_be_poisoned());
  });
  return passes;
}

}  // namespace

void DependencePolicy::find_predecessors(const Action& action, const ActionWindow& window) {
  predecessors_.clear();
  if (waits_for_front(action)) return;
  if (action.kind == ActionKind::barrier) {
    for (std::uint64_t at = std::max(window.low(), last_barrier_ + 1); at < window.high(); ++at) {
      Action* const earlier = window.at(at);
      if (earlier == nullptr || propagates_failure(*earlier)) continue;
      follow(earlier, earlier->kind == ActionKind::marker);
    }
    if (predecessors_.empty()) follow(window.at(last_barrier_), false);
  } else if (is_fifo()) {
    follow(window.at(last_fifo_), false);
  } else {
    if (tracks(action)) find_conflicts(action, window);
    follow(window.at(last_barrier_), policy_ == WEIR_DEPENDENCE_POLICY_NONE);
  }
}

void DependencePolicy::find_conflicts(const Action& action, const ActionWindow& window) {
  const auto in_flight = [&](std::uint64_t sequence) { return window.at(sequence) != nullptr; };
  table_.trim(in_flight);
  inherited_ = action.failure;
  table_.collect(
      action, in_flight,
      [&](std::uint64_t sequence, bool ignores_failure) {
        Action* const earlier = window.at(sequence);
        if (earlier != nullptr) follow(earlier, ignores_failure || earlier->traits.non_ordering);
      },
      inherited_);
}

void DependencePolicy::enter(Action& action) noexcept {
  if (waits_for_front(action)) return;
  if (action.kind == ActionKind::barrier || is_fifo()) {
    if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
    last_fifo_ = action.sequence();
    if (action.kind == ActionKind::barrier) last_barrier_ = last_fifo_;
  } else if (tracks(action)) {
    if (action.kind == ActionKind::clear_poison || action.traits.clears_poison)
      table_.clear_poison_of(action);
    inherited_.merge(poison_all_);
    if (action.kind != ActionKind::clear_poison) action.failure = std::move(inherited_);
    table_.enter(action);
  }
}

void DependencePolicy::inherit(Action& action) noexcept {
  if (action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
  if (action.kind == ActionKind::clear_poison) return table_.clear_poison_of(action);
  if (tracks(action)) {
    table_.find_poison(action, action.failure);
    if (action.traits.clears_poison) table_.clear_poison_of(action);
    action.failure.merge(poison_all_);
  } else if (is_fifo()) {
    action.failure.merge(first_failure_);
  }
}

bool DependencePolicy::conclude(Action& action) noexcept {
  if (action.kind == ActionKind::drain) {
    conclude_drain(action);
    return false;
  }
  // Actions after a marker may have failed already.
  if (orders_stream(action.kind) && action.status == WEIR_STATUS_OK &&
      first_sequence_ < action.sequence())
    action.failure.merge(first_failure_);
  if (!action.failure) [[likely]]
    return false;
  if (action.status == WEIR_STATUS_OK) action.status = WEIR_STATUS_POISONED;
  return action.kind != ActionKind::marker && note_failure(action);
}

void DependencePolicy::conclude_drain(Action& drain) noexcept {
  drain.status = first_status_;
  drain.failure = first_failure_;
  if (!drain.decide_fate(drain.id(), DrainFate::reported)) return;
  first_status_ = WEIR_STATUS_OK;
  first_failure_.reset();
  poison_all_.reset();
  table_.clear_poison();
}

/// Returns whether the failure is now the first one of the stream.
bool DependencePolicy::note_failure(const Action& action) noexcept {
  if (action.status == WEIR_STATUS_CANCELLED) return false;
  const bool is_first = !first_failure_ || action.sequence() < first_sequence_;
  if (is_first) {
    first_failure_ = action.failure;
    first_status_ = action.status;
    first_sequence_ = action.sequence();
  }
  if (action.kind == ActionKind::barrier || is_fifo()) {
    poison_all_.merge(action.failure);
    return is_first;
  }
  if (policy_ != WEIR_DEPENDENCE_POLICY_OPERANDS || action.traits.non_ordering) return is_first;
  try {
    table_.poison(action, action.failure);
  } catch (const std::bad_alloc&) {
    poison_all_.merge(action.failure);
  }
  return is_first;
}

FailureRef DependencePolicy::failure_behind(const Action& action,
                                            bool ignores_failure) const noexcept {
  if (is_fifo()) return first_failure_;
  return action.kind == ActionKind::barrier && !ignores_failure ? poison_all_ : FailureRef();
}

FailureRef DependencePolicy::failure_through_operands(const Action& action) const noexcept {
  FailureRef failure;
  if (table_.poisoned()) table_.find_poison(action, failure);
  return failure;
}

}  // namespace weir::rt
