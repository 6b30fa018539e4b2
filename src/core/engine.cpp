#include "core/engine.hpp"

#include <new>
#include <utility>

namespace weir::rt {

namespace {

bool orders_stream(ActionKind kind) noexcept {
  return kind == ActionKind::barrier || kind == ActionKind::drain || kind == ActionKind::marker;
}

bool runs(ActionKind kind) noexcept {
  return kind == ActionKind::compute || kind == ActionKind::transfer;
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
  const std::uint64_t mask = bigger.size() - 1;
  for (std::uint64_t at = low_; at < high_; ++at) bigger[at & mask] = ring_[at & mask_];
  ring_ = std::move(bigger);
  mask_ = mask;
}

void Engine::Window::push(Action& action) noexcept {
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
  action.successors = nullptr;
  if (orders_stream(action.kind)) {
    admit_ordering(action);
    return false;
  }
  try {
    if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {
      if (action.status == WEIR_STATUS_OK) action.failure.merge(first_failure_);
      window_.reserve();
    } else if (tracks() && action.status == WEIR_STATUS_OK) {
      admit_tracked(action);
    } else {
      window_.reserve();
    }
  } catch (const std::bad_alloc&) {
    defer(action);
    return false;
  }
  window_.push(action);
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
  window_.push(action);
  complete_front();
}

void Engine::admit_tracked(Action& action) {
  predecessors_.clear();
  FailureRef poison = action.failure;
  const auto matters = [this](std::uint64_t sequence) { return in_flight(sequence); };
  table_.trim(matters);
  table_.collect(
      action, matters,
      [this](std::uint64_t sequence) {
        if (Action* const earlier = window_.at(sequence)) predecessors_.push_back(earlier);
      },
      poison);
  edges_.reserve(predecessors_.size());
  window_.reserve();
  // Nothing below fails.
  poison.merge(poison_all_);
  action.failure = std::move(poison);
  for (Action* const predecessor : predecessors_) {
    Edge& edge = edges_.take();
    edge = {&action, predecessor->successors};
    predecessor->successors = &edge;
  }
  action.pending += static_cast<std::uint32_t>(predecessors_.size());
  table_.enter(action);
}

void Engine::settle(Action& action) noexcept {
  if (action.pending > 0) return;
  if (runs_not(action)) {
    complete(action);
  } else {
    make_ready(action);
  }
}

void Engine::make_ready(Action& action) noexcept {
  (action.kind == ActionKind::transfer ? ready_transfers_ : ready_computes_).push(action);
}

Action* Engine::pop_ready(ActionList& list) noexcept {
  Action* const action = list.pop();
  if (action != nullptr) action->started = true;
  return action;
}

/// Keeps an action for which there is no memory until it is the only one.
void Engine::defer(Action& action) noexcept {
  deferred_ = &action;
  resume_deferred();
}

/// Gives a deferred action the failures it would have met, had it been tracked.
void Engine::inherit_failures(Action& action) noexcept {
  if (action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) return;
  if (tracks()) {
    table_.find_poison(action, action.failure);
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

void Engine::satisfy(Action& action, const FailureRef& failure) noexcept {
  if (failure && action.status == WEIR_STATUS_OK) action.failure.merge(failure);
  if (--action.pending > 0) return;
  if (!action.windowed) {
    resume_deferred();
  } else if (orders_stream(action.kind)) {
    complete_front();
  } else {
    complete(action);
  }
}

bool Engine::finish(Action& action) noexcept {
  if (&action != exclusive_) {
    complete(action);
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
  release_successors(action);
  finished_.push(action);
  complete_front();
}

void Engine::release_successors(Action& action) noexcept {
  const bool poisons = action.failure && action.status != WEIR_STATUS_CANCELLED;
  for (Edge* edge = std::exchange(action.successors, nullptr); edge != nullptr;) {
    Action& successor = *edge->successor;
    if (poisons && successor.status == WEIR_STATUS_OK) successor.failure.merge(action.failure);
    if (--successor.pending == 0) {
      settle(successor);
    }
    edges_.give(*std::exchange(edge, edge->next));
  }
}

/// An action that orders the stream is over when everything before it is.
void Engine::complete_front() noexcept {
  for (Action* front = window_.front();
       front != nullptr && orders_stream(front->kind) && front->pending == 0;
       front = window_.front()) {
    end_ordering(*front);
    window_.remove(*front);
    finished_.push(*front);
  }
}

void Engine::end_ordering(Action& action) noexcept {
  if (action.kind != ActionKind::marker) blocked_ = false;
  if (action.kind == ActionKind::drain) {
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
  if (!tracks()) return;
  try {
    table_.poison(action, action.failure);
  } catch (const std::bad_alloc&) {
    poison_all_.merge(action.failure);
  }
}

void Engine::cancel(const FailureRef& reason) noexcept {
  each_admitted([&](Action& action) {
    if (action.started || action.kind == ActionKind::drain || action.status != WEIR_STATUS_OK) {
      return;
    }
    action.status = WEIR_STATUS_CANCELLED;
    action.failure = reason;
  });
  complete_cancelled(ready_transfers_);
  complete_cancelled(ready_computes_);
}

void Engine::complete_cancelled(ActionList& list) noexcept {
  ActionList ready = std::exchange(list, {});
  while (Action* const action = ready.pop()) {
    if (!runs_not(*action)) {
      list.push(*action);
    } else if (finish(*action)) {
      finished_.push(*action);
    }
  }
}

}  // namespace weir::rt
