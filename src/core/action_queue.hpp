// The queue from producers to the owner of the engine.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "base/plain.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

/// An unbounded queue of actions for any number of producers and one consumer at a time.
///
/// One word holds the number of actions pushed, the producers' lock, and whether the consumer is
/// idle, so an enqueue costs one locked instruction. The queue consists of reused chunks; the
/// consumer sees the next actions and prefetches them.
class ActionQueue {
 public:
  ActionQueue();
  ActionQueue(const ActionQueue&) = delete;
  ActionQueue& operator=(const ActionQueue&) = delete;
  ~ActionQueue();

  /// The producers' lock. The producer that fills in the next action holds it.
  class ProducerLock {
   public:
    explicit ProducerLock(ActionQueue& queue) noexcept : queue_(queue), word_(queue.lock()) {}
    ProducerLock(const ProducerLock&) = delete;
    ProducerLock& operator=(const ProducerLock&) = delete;
    ~ProducerLock() {
      if (!pushed_) queue_.word_.store(word_, std::memory_order_release);
    }

    /// Returns the number of actions pushed before this one.
    std::uint64_t count() const noexcept { return word_ >> kCountShift; }
    /// Allocates memory for the next push(). Throws std::bad_alloc.
    void reserve() { queue_.reserve(count()); }
    /// Appends the action and releases the lock. Returns whether the consumer was idle: then the
    /// caller must ensure that a thread consumes the action.
    bool push(Action& action) noexcept {
      pushed_ = true;
      return queue_.push(action, word_);
    }

   private:
    ActionQueue& queue_;
    const std::uint64_t word_;
    bool pushed_ = false;
  };

  /// Returns the number of actions pushed so far. Any thread.
  std::uint64_t pushed() const noexcept {
    return word_.load(std::memory_order_seq_cst) >> kCountShift;
  }

  /// Consumer: removes and returns the first of the actions that it has seen, nullptr if there is
  /// none.
  Action* pop() noexcept;
  /// Consumer: checks for new actions. Returns whether pop() has one. Each check takes the cache
  /// line of the word from the producers, so a consumer that is faster than they are checks only
  /// occasionally.
  bool poll() noexcept {
    if (popped_ == seen_) seen_ = word_.load(std::memory_order_acquire) >> kCountShift;
    return popped_ != seen_;
  }
  std::uint64_t popped() const noexcept { return popped_; }
  /// Consumer: how many actions pop() has without another poll.
  std::uint64_t ready() const noexcept { return seen_ - popped_; }

  /// Consumer: becomes idle, so that the next producer takes over. Fails if there is an action, or
  /// a producer is pushing one.
  bool go_idle() noexcept;

 private:
  static constexpr std::uint64_t kLocked = 1;
  static constexpr std::uint64_t kIdle = 2;
  static constexpr unsigned kCountShift = 2;
  static constexpr std::uint64_t kChunkActions = sys::scaled(512, 2);
  static constexpr std::uint64_t kAhead = 10;
  struct Chunk {
    sys::Plain<Action*> actions[kChunkActions];
    sys::Plain<Chunk*> next = nullptr;
  };

  /// Acquires the lock. Returns the word without the lock bit.
  std::uint64_t lock() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed) & ~kLocked;
    for (unsigned tries = 1; !word_.compare_exchange_weak(
             word, word | kLocked, std::memory_order_acquire, std::memory_order_relaxed);
         ++tries) {
      word &= ~kLocked;
      if (tries % 64 == 0) {
        sys::yield();
      } else {
        sys::pause();
      }
    }
    return word;
  }
  void reserve(std::uint64_t count) {
    if (count % kChunkActions == 0 && count > 0 && fresh_ == nullptr) make_room();
  }
  bool push(Action& action, std::uint64_t word) noexcept {
    assert((word_.load(std::memory_order_relaxed) & kLocked) != 0);  // the caller has the lock
    const std::uint64_t count = word >> kCountShift;
    if (count % kChunkActions == 0 && count > 0) link_fresh();
    tail_->actions[count % kChunkActions] = &action;
    const std::uint64_t next = (count + 1) << kCountShift;
    if ((word & kIdle) == 0) [[likely]] {
      word_.store(next, std::memory_order_release);
      return false;
    }
    word_.store(next, std::memory_order_seq_cst);
    return true;
  }
  void make_room();
  void link_fresh() noexcept;
  void recycle(Chunk* chunk) noexcept;

  // Of the producers.
  alignas(64) sys::Plain<Chunk*> tail_;
  sys::Plain<Chunk*> fresh_ = nullptr;  ///< list of chunks for reuse
  // Shared.
  alignas(64) sys::Atomic<std::uint64_t> word_{kIdle};
  sys::Atomic<Chunk*> spare_{nullptr};  ///< list of chunks that the consumer has read
  // Of the consumer.
  alignas(64) sys::Plain<Chunk*> head_;
  sys::Plain<std::uint64_t> popped_ = 0;
  sys::Plain<std::uint64_t> seen_ = 0;
};

inline Action* ActionQueue::pop() noexcept {
  if (popped_ == seen_) return nullptr;
  const std::uint64_t slot = popped_ % kChunkActions;
  if (slot == 0 && popped_ > 0) {
    Chunk* const done = head_;
    head_ = done->next;
    recycle(done);
  }
  Action* const action = head_->actions[slot];
  ++popped_;
  if (popped_ + kAhead <= seen_ && slot + kAhead < kChunkActions) {
    action->prefetch_alike(head_->actions[slot + kAhead]);
  }
  return action;
}

}  // namespace weir::rt
