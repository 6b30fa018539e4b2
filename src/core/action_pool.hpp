// A pool of reusable action slots. They are never unmapped while the runtime lives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/plain.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

/// All slots of a runtime. Streams take batches of them and return them when they end.
class ActionPool {
 public:
  ActionPool();
  ActionPool(const ActionPool&) = delete;
  ActionPool& operator=(const ActionPool&) = delete;
  ~ActionPool();

  /// Returns a batch of at most 64 free slots linked by `next`. Throws std::bad_alloc.
  Action* take();
  /// Returns a list of free slots of any length to the pool.
  void give(Action* list) noexcept;

  /// Returns a slot by index, nullptr if there is none: events come from user memory.
  Action* at(std::uint64_t slot) const noexcept;

 private:
  static constexpr std::uint32_t kChunkSlots = sys::scaled(64, 2);
  static constexpr std::uint32_t kPageChunks = sys::scaled(4096, 4);
  static constexpr std::uint32_t kPages = sys::scaled(4096, 16);
  using Page = std::array<sys::Plain<Action*>, kPageChunks>;

  Action* grow() WEIR_REQUIRES(lock_);

  SpinLock lock_;
  sys::Plain<Action*> free_ = nullptr;  // batches, linked by the `next_message` of their first slot
  sys::Atomic<std::uint32_t> chunks_{0};
  std::unique_ptr<std::array<std::unique_ptr<Page>, kPages>> pages_;
};

/// The slots of one stream. The producer takes them; the owner of the engine returns them.
///
/// Slots return through a ring of pointers instead of a list, so that the producer can prefetch the
/// cache lines of the next ones, which the owner's core wrote last. Slots that do not fit in the
/// ring go into a list. A slot's `stream` is set when it comes from the pool.
class ActionCache {
 public:
  ActionCache(ActionPool& pool, Executor* stream);
  ActionCache(const ActionCache&) = delete;
  ActionCache& operator=(const ActionCache&) = delete;
  ~ActionCache();

  /// Producer: returns a free slot. Throws std::bad_alloc.
  Action& take() {
    if (taken_ == seen_ && taken_ == (seen_ = returned_.load(std::memory_order_acquire))) {
      return take_fresh();
    }
    Action& slot = *ring_[taken_ % kRing];
    if (seen_ - taken_ > kAhead) {
      slot.prefetch_alike(ring_[(taken_ + kAhead) % kRing]);
    }
    ++taken_;
    if (taken_ % kBatch == 0) reusable_.store(taken_, std::memory_order_release);
    return slot;
  }
  /// Producer: returns a slot that it took and did not use.
  void undo_take(Action& slot) noexcept {
    slot.next = fresh_;
    fresh_ = &slot;
  }

  /// Owner: returns the slot of a completed action.
  void give(Action& slot) noexcept {
    if (given_ - room_ >= kRing &&
        given_ - (room_ = reusable_.load(std::memory_order_acquire)) >= kRing) {
      give_to_list(slot);
      return;
    }
    ring_[given_ % kRing] = &slot;
    if (++given_ % kBatch == 0) flush();
  }
  /// Owner: makes all returned slots visible to the producer.
  void flush() noexcept { returned_.store(given_, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kRing = sys::scaled(4096, 4);
  static constexpr std::uint64_t kBatch = sys::scaled(16, 2);
  static constexpr std::uint64_t kAhead = 10;
  static constexpr std::uint64_t kEnough = sys::scaled(1024, 4);

  Action& take_fresh();
  bool wait_for_returned() noexcept;
  void give_to_list(Action& slot) noexcept;

  ActionPool& pool_;
  Executor* const stream_;
  std::unique_ptr<sys::Plain<Action*>[]> ring_;
  // Of the producer.
  alignas(64) sys::Plain<std::uint64_t> taken_ = 0;
  sys::Plain<std::uint64_t> seen_ = 0;
  sys::Plain<Action*> fresh_ = nullptr;
  sys::Plain<std::uint64_t> owned_ = 0;     ///< slots that came from the pool
  sys::Atomic<std::uint64_t> reusable_{0};  ///< ring position up to which cells may be overwritten
  // Of the owner.
  alignas(64) sys::Plain<std::uint64_t> given_ = 0;
  sys::Plain<std::uint64_t> room_ = 0;
  sys::Atomic<std::uint64_t> returned_{0};
  sys::Atomic<Action*> list_{nullptr};  ///< slots that did not fit in the ring
};

}  // namespace weir::rt
