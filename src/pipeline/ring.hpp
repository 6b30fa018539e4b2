// A bounded queue that any thread fills and empties, many items at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/threads.hpp"

namespace weir::rt {

/// No thread waits for another. While a thread has claimed slots and not filled them, the items
/// behind them are hidden, and the queue appears empty, or full, to other threads.
///
/// Each slot has a sequence number: `position` when it is free for the item of that position,
/// `position + 1` when it holds that item (Vyukov). Positions are claimed for many items at once.
/// The first slot of a batch is published last and sequentially consistently: a thread that
/// announces sleep and then checks once more cannot miss a batch whose producer sees no sleeper.
///
/// Cells is the memory: Cells(slots), write(slot, items, first, count), read(slot, items, first,
/// count).
template <class Cells>
class Ring {
 public:
  /// Room for up to `capacity` items, at least 1. Throws std::bad_alloc.
  template <class... Given>
  explicit Ring(std::size_t capacity, Given&&... given)
      : capacity_(capacity),
        mask_(std::bit_ceil(std::max<std::size_t>(capacity, 2)) - 1),
        sequences_(std::make_unique<sys::Atomic<std::uint64_t>[]>(mask_ + 1)),
        cells_(mask_ + 1, std::forward<Given>(given)...) {
    for (std::size_t i = 0; i <= mask_; ++i) sequences_[i].store(i, std::memory_order_relaxed);
  }

  std::size_t capacity() const noexcept { return capacity_; }
  /// Enlarges the ring. Before its first item, while no other thread uses it. Throws
  /// std::bad_alloc.
  template <class... Given>
  void grow(std::size_t capacity, Given&&... given) {
    Ring larger(capacity, std::forward<Given>(given)...);
    capacity_ = larger.capacity_;
    mask_ = larger.mask_;
    sequences_ = std::move(larger.sequences_);
    cells_ = std::move(larger.cells_);
  }

  /// Puts as many of `count` items as fit; calls claimed(number) with their number before another
  /// thread can see them. Returns the number.
  template <class Items, class Claimed>
  std::size_t push(const Items& items, std::size_t count, Claimed&& claimed) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    std::size_t found = 0;
    for (;;) {
      const std::uint64_t limit = head_.load(std::memory_order_seq_cst) + capacity_;
      const std::size_t room = limit > at ? static_cast<std::size_t>(limit - at) : 0;
      found = count_ready(at, std::min(count, room), 0);
      if (found == 0) {
        const std::uint64_t now = tail_.load(std::memory_order_seq_cst);
        if (now == at) return 0;
        at = now;
      } else if (tail_.compare_exchange_weak(at, at + found, std::memory_order_seq_cst,
                                             std::memory_order_relaxed)) {
        break;
      }
    }
    claimed(found);
    pieces(at, found, [&](std::size_t slot, std::size_t first, std::size_t length) {
      cells_.write(slot, items, first, length);
    });
    publish(at, found, 1);
    return found;
  }
  template <class Items>
  std::size_t push(const Items& items, std::size_t count) noexcept {
    return push(items, count, [](std::size_t) {});
  }

  /// Takes up to `count` items, the oldest first. Returns the number.
  template <class Items>
  std::size_t pop(const Items& items, std::size_t count) noexcept {
    std::uint64_t at = head_.load(std::memory_order_relaxed);
    std::size_t found = 0;
    for (;;) {
      found = count_ready(at, count, 1);
      if (found == 0) {
        const std::uint64_t now = head_.load(std::memory_order_seq_cst);
        if (now == at) return 0;
        at = now;
      } else if (head_.compare_exchange_weak(at, at + found, std::memory_order_seq_cst,
                                             std::memory_order_relaxed)) {
        break;
      }
    }
    pieces(at, found, [&](std::size_t slot, std::size_t first, std::size_t length) {
      cells_.read(slot, items, first, length);
    });
    publish(at, found, mask_ + 1);
    return found;
  }

  /// Whether pop() would find an item, or push() room.
  bool ready() const noexcept { return has_sequence(head_.load(std::memory_order_seq_cst), 1); }
  bool has_room() const noexcept {
    const std::uint64_t at = tail_.load(std::memory_order_seq_cst);
    return at < head_.load(std::memory_order_seq_cst) + capacity_ && has_sequence(at, 0);
  }
  /// Approximate number of items.
  std::size_t size() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return tail > head ? static_cast<std::size_t>(tail - head) : 0;
  }

 private:
  bool has_sequence(std::uint64_t position, std::uint64_t sequence) const noexcept {
    return sequences_[position & mask_].load(std::memory_order_seq_cst) == position + sequence;
  }
  std::size_t count_ready(std::uint64_t from, std::size_t most,
                          std::uint64_t sequence) const noexcept {
    std::size_t found = 0;
    while (found < most && has_sequence(from + found, sequence)) ++found;
    return found;
  }
  void publish(std::uint64_t from, std::size_t count, std::uint64_t sequence) noexcept {
    while (--count > 0) {
      sequences_[(from + count) & mask_].store(from + count + sequence, std::memory_order_release);
    }
    sequences_[from & mask_].store(from + sequence, std::memory_order_seq_cst);
  }
  template <class Use>
  void pieces(std::uint64_t from, std::size_t count, Use&& use) noexcept {
    const std::size_t slot = from & mask_;
    const std::size_t length = std::min(count, mask_ + 1 - slot);
    use(slot, 0, length);
    if (length < count) use(0, length, count - length);
  }

  std::size_t capacity_;
  std::size_t mask_;
  std::unique_ptr<sys::Atomic<std::uint64_t>[]> sequences_;
  Cells cells_;
  alignas(64) sys::Atomic<std::uint64_t> head_{0};
  alignas(64) sys::Atomic<std::uint64_t> tail_{0};
};

}  // namespace weir::rt
