// Collections of the actions of one stream: lists, the ready ones, the window.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

/// The ready actions of one stream: external actions, transfers, and, by priority class, compute
/// actions. Within each the first in is the first out.
class ReadyQueue {
 public:
  void push(Action& action) noexcept {
    switch (action.kind) {
      case ActionKind::compute: computes_[action.traits.priority_class].push(action); break;
      case ActionKind::external: externals_.push(action); break;
      default: transfers_.push(action);
    }
  }
  Action* pop_external() noexcept { return externals_.pop(); }
  Action* pop_transfer() noexcept { return transfers_.pop(); }
  Action* pop_compute() noexcept {
    for (ActionList& list : computes_) {
      if (!list.empty()) return list.pop();
    }
    return nullptr;
  }
  /// Returns the next action of any kind.
  Action* pop() noexcept {
    if (Action* const external = pop_external()) return external;
    Action* const transfer = pop_transfer();
    return transfer != nullptr ? transfer : pop_compute();
  }
  bool empty() const noexcept { return externals_.empty() && transfers_.empty() && !has_compute(); }
  bool has_compute() const noexcept {
    return !computes_[0].empty() || !computes_[1].empty() || !computes_[2].empty();
  }

 private:
  ActionList externals_, transfers_;
  std::array<ActionList, 3> computes_;
};

/// Values of consecutive sequence numbers, in a ring that grows.
template <class T>
class SequenceRing {
 public:
  T& operator[](std::uint64_t sequence) noexcept { return slots_[sequence & mask_]; }
  const T& operator[](std::uint64_t sequence) const noexcept { return slots_[sequence & mask_]; }
  /// Makes room for the value of `high` and keeps those of [low, high). Throws std::bad_alloc.
  void reserve(std::uint64_t low, std::uint64_t high) {
    if (high - low < slots_.size()) return;
    std::vector<T> bigger(std::max<std::size_t>(64, 2 * slots_.size()));
    const std::uint64_t mask = bigger.size() - 1;
    for (std::uint64_t at = low; at < high; ++at) bigger[at & mask] = (*this)[at];
    slots_ = std::move(bigger);
    mask_ = mask;
  }

 private:
  std::vector<T> slots_;
  std::uint64_t mask_ = 0;
};

/// The admitted actions by sequence number, from the oldest incomplete one.
class ActionWindow {
 public:
  bool empty() const noexcept { return low_ == high_; }
  std::uint64_t low() const noexcept { return low_; }
  std::uint64_t high() const noexcept { return high_; }
  /// Returns an action in the window, nullptr if the number is that of no such action.
  Action* at(std::uint64_t sequence) const noexcept {
    return sequence >= low_ && sequence < high_ ? ring_[sequence] : nullptr;
  }
  Action* front() const noexcept { return empty() ? nullptr : ring_[low_]; }
  /// Makes room for one more action. Throws std::bad_alloc.
  void reserve() { ring_.reserve(low_, high_); }
  void push(Action& action) noexcept {
    assert(action.sequence() == high_);
    ring_[high_++] = &action;
    action.in_window = true;
  }
  void remove(const Action& action) noexcept {
    assert(at(action.sequence()) == &action);
    ring_[action.sequence()] = nullptr;
    while (low_ < high_ && ring_[low_] == nullptr) ++low_;
  }
  /// Skips a sequence number while the window is empty.
  void skip(std::uint64_t sequence) noexcept {
    assert(empty() && sequence >= high_);
    low_ = high_ = sequence + 1;
  }

 private:
  SequenceRing<Action*> ring_;
  std::uint64_t low_ = 1;
  std::uint64_t high_ = 1;
};

}  // namespace weir::rt
