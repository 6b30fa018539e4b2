// Lists of actions, and the ready actions of a stream.
#pragma once

#include <array>

#include "core/action.hpp"

namespace weir::rt {

/// A first-in first-out list of actions linked by `next`.
class ActionList {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  void push(Action& action) noexcept {
    action.next = nullptr;
    (tail_ ? tail_->next : head_) = &action;
    tail_ = &action;
  }
  Action* pop() noexcept {
    Action* const action = head_;
    if (action != nullptr) {
      head_ = action->next;
      if (head_ == nullptr) tail_ = nullptr;
    }
    return action;
  }

 private:
  Action* head_ = nullptr;
  Action* tail_ = nullptr;
};

/// The ready actions of one stream: transfers and, by priority class, compute actions. Within each
/// the first in is the first out.
class ReadyQueue {
 public:
  void push(Action& action) noexcept {
    (action.kind == ActionKind::transfer ? transfers_ : computes_[action.traits.priority_class])
        .push(action);
  }
  Action* pop_transfer() noexcept { return transfers_.pop(); }
  Action* pop_compute() noexcept {
    for (ActionList& list : computes_) {
      if (!list.empty()) return list.pop();
    }
    return nullptr;
  }
  bool has_transfer() const noexcept { return !transfers_.empty(); }
  bool has_compute() const noexcept {
    return !computes_[0].empty() || !computes_[1].empty() || !computes_[2].empty();
  }

 private:
  ActionList transfers_;
  std::array<ActionList, 3> computes_;
};

}  // namespace weir::rt
