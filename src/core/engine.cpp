#include "core/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace weir::rt {

namespace {

/// A device gets what comes after a barrier when the barrier waits for no more than so many jobs:
/// each of them is something that every action behind it waits for.
constexpr std::uint32_t kMostPassedOn = 16;

bool orders_stream(ActionKind kind) noexcept {
  return kind == ActionKind::barrier || kind == ActionKind::drain || kind == ActionKind::marker;
}

bool runs(ActionKind kind) noexcept {
  return kind == ActionKind::compute || kind == ActionKind::transfer;
}

/// Whether the failure of a predecessor concerns it: it has no other.
bool may_be_poisoned(const Action& action) noexcept {
  if (action.kind == ActionKind::renewal) return false;
  return action.status == WEIR_STATUS_OK || action.status == WEIR_STATUS_POISONED;
}

/// Whether the failure of an action reaches one that follows it through its successors.
bool passes_failure_on(const Action& action) noexcept {
  bool passes = false;
  action.successors.for_each([&](const Edge& edge) {
    passes = passes || (!edge.harmless && may_be_poisoned(*edge.successor));
  });
  return passes;
}

/// Whether the action has nothing to do but to be over.
bool runs_not(const Action& action) noexcept {
  return !runs(action.kind) || action.elided || action.failure || action.status != WEIR_STATUS_OK;
}

}  // namespace

Engine::~Engine() = default;

void Engine::Window::reserve() {
  if (high_ - low_ < ring_.size()) return;
  std::vector<Action*> bigger(std::max<std::size_t>(64, 2 * ring_.size()), nullptr);
  std::vector<Early> bigger_early(by_device_ ? bigger.size() : 0);
  const std::uint64_t mask = bigger.size() - 1;
  for (std::uint64_t at = low_; at < high_; ++at) {
    bigger[at & mask] = ring_[at & mask_];
    if (by_device_) bigger_early[at & mask] = early_[at & mask_];
  }
  ring_ = std::move(bigger);
  early_ = std::move(bigger_early);
  mask_ = mask;
}

void Engine::Window::push(Action& action) noexcept {
  if (by_device_) early_[high_ & mask_] = {};
  ring_[high_++ & mask_] = &action;
  action.windowed = true;
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

bool Engine::admit(Action& action, bool alone) noexcept {
  action.windowed = false;
  action.started = alone;
  if (alone && window_.empty() && clean() && action.status == WEIR_STATUS_OK) [[likely]] {
    exclusive_ = &action;
    return true;
  }
  action.started = false;
  action.successors = {};
  if (action.kind == ActionKind::renewal && action.status == WEIR_STATUS_OK) action.failure.reset();
  if (waits_for_front(action)) {
    admit_ordering(action);
    return false;
  }
  predecessors_.clear();
  try {
    if (action.kind == ActionKind::barrier) {
      admit_barrier(action);
    } else if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
      admit_in_line(action);
    } else if (tracks() && action.status == WEIR_STATUS_OK) {
      admit_tracked(action);
    } else {
      follow_barrier(is_free());
      edges_.reserve(predecessors_.size());
      window_.reserve();
    }
  } catch (const std::bad_alloc&) {
    defer(action);
    return false;
  }
  enter(action);
  connect(action);
  settle(action);
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

/// A barrier that the device keeps: it follows all that is not over, and all that comes follows it.
void Engine::admit_barrier(Action& action) {
  const std::uint64_t first = std::max(window_.low(), last_barrier_ + 1);
  for (std::uint64_t at = first; at < window_.high(); ++at) {
    Action* const earlier = window_.at(at);
    if (earlier == nullptr || passes_failure_on(*earlier)) continue;
    predecessors_.push_back({earlier, earlier->kind == ActionKind::marker});
  }
  if (predecessors_.empty()) follow_barrier(false);
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
  last_barrier_ = last_in_line_ = action.sequence();
}

/// What is admitted follows the last barrier, if that is not over.
void Engine::follow_barrier(bool harmless) {
  Action* const barrier = window_.at(last_barrier_);
  if (barrier != nullptr) predecessors_.push_back({barrier, harmless});
}

void Engine::admit_tracked(Action& action) {
  FailureRef poison = action.failure;
  const auto matters = [this](std::uint64_t sequence) { return in_flight(sequence); };
  table_.trim(matters);
  table_.collect(
      action, matters,
      [this](std::uint64_t sequence, bool harmless) {
        if (Action* const earlier = window_.at(sequence)) {
          predecessors_.push_back({earlier, harmless || earlier->aside});
        }
      },
      poison);
  follow_barrier(false);
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.kind == ActionKind::renewal || action.replaces) table_.renew(action);
  if (action.kind != ActionKind::renewal) {
    poison.merge(poison_all_);
    action.failure = std::move(poison);
  }
  table_.enter(action);
}

/// Each follows the one before it; the device orders them, or there is only one at a time.
void Engine::admit_in_line(Action& action) {
  if (Action* const last = window_.at(last_in_line_)) predecessors_.push_back({last, false});
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
  last_in_line_ = action.sequence();
}

void Engine::enter(Action& action) noexcept {
  window_.push(action);
  if (by_device_) early_of(action).unissued = unknown_events(action);
}

/// Counts the events, not complete, that the device does not know.
std::uint32_t Engine::unknown_events(Action& action) noexcept {
  std::uint32_t unknown = action.pending;
  for (const EventWait& wait : action.events()) unknown -= wait.job != 0 ? 1 : 0;
  return unknown;
}

/// Makes the action a successor of its predecessors.
void Engine::connect(Action& action) noexcept {
  for (const auto& [predecessor, harmless] : predecessors_) {
    Edge& edge = edges_.take();
    edge = {&action, nullptr, predecessor, nullptr, harmless};
    predecessor->successors.add(edge);
    if (!by_device_) continue;
    note_wait(action, edge);
    action.apart = action.apart || harmless;  // the device would see the failure
  }
  action.pending += static_cast<std::uint32_t>(predecessors_.size());
}

void Engine::note_wait(Action& action, Edge& edge) noexcept {
  const Action& predecessor = *edge.predecessor;
  Early& early = early_of(action);
  edge.next_wait = std::exchange(early.waits, &edge);
  if (!early_of(predecessor).issued) ++early.unissued;
  // How one that was handed out goes is for the thread that runs it to write.
  if (predecessor.started || predecessor.status == WEIR_STATUS_CANCELLED || edge.harmless) return;
  poison(action, predecessor.failure);
}

void Engine::settle(Action& action) noexcept {
  if (by_device_) return settle_by_device(action);
  if (action.pending > 0) return;
  if (runs_not(action)) {
    complete(action);
  } else {
    make_ready(action);
  }
}

/// Hands an action out, or lets it pass, before everything it depends on is over.
void Engine::settle_by_device(Action& action) noexcept {
  const Early& early = early_of(action);
  if (early.queued || action.started) return;
  if (!runs_not(action)) {
    if ((action.apart ? action.pending : early.unissued) == 0) make_ready(action);
  } else if (action.pending == 0) {
    complete(action);
  } else if (early.unissued == 0 && !early.issued && may_pass(action)) {
    pass_on(action);
  }
}

/// Whether successors of an action that is no job may wait for its predecessors instead: all of
/// these are jobs, or over.
bool Engine::may_pass(const Action& action) const noexcept {
  if (action.failure || action.status != WEIR_STATUS_OK) return false;
  if (action.kind == ActionKind::renewal) return false;  // the device would see failures through it
  if (action.kind == ActionKind::barrier && action.pending > kMostPassedOn) return false;
  for (const Edge* edge = early_of(action).waits; edge != nullptr; edge = edge->next_wait) {
    if (edge->predecessor != nullptr && early_of(*edge->predecessor).number == 0) return false;
  }
  return true;
}

void Engine::hold(Action& action) noexcept {
  action.started = false;
  action.apart = true;
  settle(action);
}

void Engine::issue(Action& action, std::uint64_t number) noexcept {
  drop_waits(action);
  early_of(action).number = number;
  pass_on(action);
}

/// Successors need not wait for the end of the action.
void Engine::pass_on(Action& action) noexcept {
  early_of(action).issued = true;
  action.successors.for_each([this](const Edge& edge) {
    --early_of(*edge.successor).unissued;
    settle(*edge.successor);
  });
}

/// The action waits for nothing any more: edges whose predecessors are over belong to nobody.
void Engine::drop_waits(Action& action) noexcept {
  for (Edge* edge = std::exchange(early_of(action).waits, nullptr); edge != nullptr;) {
    Edge* const next = edge->next_wait;
    if (edge->predecessor == nullptr) {
      edges_.give(*edge);
    } else {
      edge->next_wait = edge;  // alone: its predecessor gives it back
    }
    edge = next;
  }
}

void Engine::make_ready(Action& action) noexcept {
  if (by_device_) early_of(action).queued = true;
  (action.kind == ActionKind::transfer ? ready_transfers_ : ready_computes_[action.turn])
      .push(action);
}

Action* Engine::pop_ready(ActionList& list) noexcept {
  while (Action* const action = list.pop()) {
    if (by_device_) {
      early_of(*action).queued = false;
      if (runs_not(*action)) [[unlikely]] {  // a predecessor has failed meanwhile
        settle(*action);
        continue;
      }
    }
    action->started = true;
    return action;
  }
  return nullptr;
}

/// Keeps an action for which there is no memory until it is the only one.
void Engine::defer(Action& action) noexcept {
  deferred_ = &action;
  alone_ = {};
  if (by_device_) alone_.unissued = unknown_events(action);
  resume_deferred();
}

/// Gives a deferred action the failures it would have met, had it been tracked.
void Engine::inherit_failures(Action& action) noexcept {
  if (action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
  if (action.kind == ActionKind::renewal) return table_.renew(action);
  if (tracks()) {
    table_.find_poison(action, action.failure);
    if (action.replaces) table_.renew(action);
    action.failure.merge(poison_all_);
  } else if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
    action.failure.merge(first_failure_);
  }
}

void Engine::resume_deferred() noexcept {
  if (deferred_ == nullptr || !window_.empty() || deferred_->pending > 0) return;
  Action& action = *std::exchange(deferred_, nullptr);
  if (!clean()) inherit_failures(action);
  if (runs_not(action)) {
    end_unrun(action);
    window_.skip(action.sequence());
    finished_.push(action);
    return;
  }
  exclusive_ = &action;
  make_ready(action);
}

void Engine::note_issued(EventWait& wait, std::uint64_t number) noexcept {
  Action& action = *wait.action;
  wait.job = number;
  --early_of(action).unissued;
  if (action.windowed && !waits_for_front(action)) settle(action);
}

void Engine::satisfy(EventWait& wait, const FailureRef& failure) noexcept {
  Action& action = *wait.action;
  if (failure && !wait.harmless && action.status == WEIR_STATUS_OK) poison(action, failure);
  if (by_device_ && std::exchange(wait.job, 0) == 0) --early_of(action).unissued;
  if (--action.pending > 0) {
    if (by_device_ && action.windowed && !waits_for_front(action)) settle(action);
    return;
  }
  if (!action.windowed) {
    resume_deferred();
  } else if (waits_for_front(action)) {
    complete_front();
    resume_deferred();
  } else if (by_device_ && early_of(action).returned) {
    complete(action);
  } else {
    settle(action);
  }
}

bool Engine::finish(Action& action) noexcept {
  if (&action != exclusive_) {
    if (action.pending == 0) {
      complete(action);
    } else {
      early_of(action).returned = true;
    }
    return false;
  }
  exclusive_ = nullptr;
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

void Engine::end_unrun(Action& action) noexcept {
  if (orders_stream(action.kind)) {
    end_ordering(action);
  } else if (action.failure) [[unlikely]] {
    if (action.status == WEIR_STATUS_OK) action.status = WEIR_STATUS_POISONED;
    note_failure(action);
  }
}

void Engine::complete_one(Action& action) noexcept {
  end_unrun(action);
  window_.remove(action);
  if (by_device_) drop_waits(action);
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
    if (poisons && !edge->harmless) poison(successor, action.failure);
    if (cancelled && !edge->harmless) inherit_past_cancelled(successor);
    if (by_device_) {
      // Past actions that were cancelled, every failure of a line concerns all that follow, and
      // that of a barrier what comes after a later one.
      if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
        poison(successor, first_failure_);
      } else if (action.kind == ActionKind::barrier && !edge->harmless) {
        poison(successor, poison_all_);
      }
      release_by_device(*edge);
      continue;
    }
    if (--successor.pending == 0) settle(successor);
    edges_.give(*edge);
  }
}

/// Lets an action that knows only of a cancelled one meet the failures of those before that.
void Engine::inherit_past_cancelled(Action& action) noexcept {
  if (!table_.poisoned() || !may_be_poisoned(action)) return;
  FailureRef failure;
  table_.find_poison(action, failure);
  poison(action, failure);
}

/// Lets a failure of a predecessor reach an action and, when it has been passed on, what need not
/// wait for its end.
void Engine::poison(Action& action, const FailureRef& failure) noexcept {
  if (!failure || !may_be_poisoned(action)) return;
  action.failure.merge(failure);
  if (!by_device_ || action.started || !early_of(action).issued) return;
  action.successors.for_each([&](const Edge& edge) {
    if (!edge.harmless) poison(*edge.successor, failure);
  });
}

void Engine::release_by_device(Edge& edge) noexcept {
  Action& successor = *edge.successor;
  if (!early_of(*edge.predecessor).issued) --early_of(successor).unissued;
  --successor.pending;
  if (edge.next_wait == &edge) {
    edges_.give(edge);
  } else {
    edge.predecessor = nullptr;
  }
  if (!successor.started) {
    settle(successor);
  } else if (early_of(successor).returned && successor.pending == 0) {
    complete(successor);
  }
}

/// Whether the action is over when it has become the oldest of the window.
bool Engine::waits_for_front(const Action& action) const noexcept {
  return orders_stream(action.kind) && !(by_device_ && action.kind == ActionKind::barrier);
}

void Engine::complete_front() noexcept {
  for (Action* front = window_.front();
       front != nullptr && waits_for_front(*front) && front->pending == 0;
       front = window_.front()) {
    end_ordering(*front);
    window_.remove(*front);
    finished_.push(*front);
    release_successors(*front);
  }
}

void Engine::end_ordering(Action& action) noexcept {
  if (action.kind != ActionKind::marker && waits_for_front(action)) blocked_ = false;
  if (action.kind == ActionKind::drain) {
    if (!action.decide(action.id(), DrainFate::taken)) {
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
  // What comes after a marker may have failed already.
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
  if (!tracks() || action.aside) return;
  try {
    table_.poison(action, action.failure);
  } catch (const std::bad_alloc&) {
    poison_all_.merge(action.failure);
  }
}

void Engine::cancel(const FailureRef& reason, std::uint64_t until) noexcept {
  each_admitted([&](Action& action) {
    if (action.sequence() > until) return;
    const bool gone = action.started || (by_device_ && early_of(action).issued);
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
    if (!runs_not(*action)) {
      list.push(*action);
      continue;
    }
    if (by_device_) early_of(*action).queued = false;
    if (action != exclusive_) {
      settle(*action);
    } else if (finish(*action)) {
      finished_.push(*action);
    }
  }
}

}  // namespace weir::rt
