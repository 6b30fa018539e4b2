// The run queue of a place: streams with work for a worker.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/plain.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Items by priority, FIFO within each. An Item has a `priority()` below 3 and a link
/// `next_in_queue`.
template <class Item>
class RunQueue {
 public:
  /// Adds an item, then calls wake(). The item, but not the queue, may be destroyed before this
  /// returns.
  template <class Wake>
  void push(Item& item, Wake&& wake) noexcept {
    pushers_.fetch_add(1, std::memory_order_relaxed);
    {
      const SpinGuard guard(lock_);
      List& list = lists_[item.priority()];
      item.next_in_queue = nullptr;
      (list.tail ? list.tail->next_in_queue : list.head) = &item;
      list.tail = &item;
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    }
    wake();
    pushers_.fetch_sub(1, std::memory_order_release);
  }

  /// Removes and returns the first item of the highest priority, nullptr if there is none.
  Item* pop() noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const SpinGuard guard(lock_);
    for (std::size_t priority = lists_.size(); priority-- > 0;) {
      List& list = lists_[priority];
      Item* const item = list.head;
      if (item == nullptr) continue;
      list.head = item->next_in_queue;
      if (list.head == nullptr) list.tail = nullptr;
      count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_seq_cst);
      return item;
    }
    return nullptr;
  }

  /// Whether there is an item. Sequentially consistent with the announcement of a sleeper
  /// (Parking).
  bool any() const noexcept { return count_.load(std::memory_order_seq_cst) > 0; }

  /// Waits until no thread is in push(). The caller knows that no other will call it.
  void wait_until_left() const noexcept {
    while (pushers_.load(std::memory_order_acquire) > 0) sys::yield();
  }

 private:
  struct List {
    sys::Plain<Item*> head = nullptr;
    sys::Plain<Item*> tail = nullptr;
  };

  SpinLock lock_;  // guards the lists
  std::array<List, 3> lists_ WEIR_GUARDED_BY(lock_);
  alignas(64) sys::Atomic<std::uint32_t> count_{0};
  sys::Atomic<std::uint32_t> pushers_{0};
};

}  // namespace weir::rt
