// The jobs of a place that are in flight.
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

/// The in-flight jobs of a place, by submission id: taken from the feed and not returned to it. At
/// most `size` ids are in flight, from the oldest job to the newest; the jobs between them complete
/// in any order. `Slot` has a `Job job`, whose id is 0 in a free slot.
///
/// One thread at a time adds and removes jobs. Others may call first(), next() and full(), if
/// `order` is std::memory_order_seq_cst.
///
/// Example, with a size of 4:
///
///     add() three times       ids 1 2 3 in flight, first() is 1, next() is 4
///     remove() of 2           1 and 3 in flight; first() stays 1
///     add()                   1 3 4 in flight, full(): id 5 has the slot of 1
///     remove() of 1           first() is 3, find(2) and find(1) are null
template <class Slot, std::size_t size, std::memory_order order = std::memory_order_relaxed>
class JobWindow {
 public:
  static constexpr std::size_t kSize = size;
  static_assert(std::has_single_bit(size));

  JobWindow() : slots_(size) {}

  /// The id of the oldest job in flight, next() if there is none.
  std::uint64_t first() const noexcept { return first_.load(order); }
  /// The id of the next job.
  std::uint64_t next() const noexcept { return next_.load(order); }
  bool full() const noexcept {
    const std::uint64_t first = this->first();  // read before next(), which is never less than it
    return next() - first >= size;
  }

  /// The slot of a job in flight, or of the next job. Any thread.
  Slot& slot_of(std::uint64_t id) noexcept { return slots_[id % size]; }
  const Slot& slot_of(std::uint64_t id) const noexcept { return slots_[id % size]; }
  /// Returns the job with this id, nullptr if it is not in flight.
  Slot* find(std::uint64_t id) noexcept {
    Slot& slot = slot_of(id);
    return slot.job.id == id ? &slot : nullptr;
  }

  /// The free slot of the next job, unless the window is full.
  Slot& free_slot() noexcept { return slot_of(next()); }
  /// Adds the job that free_slot() has got.
  void add() noexcept {
    assert(!full() && free_slot().job.id == next());
    next_.store(next() + 1, order);
  }
  /// Removes a job. Each job is removed exactly once.
  void remove(Slot& slot) noexcept {
    assert(find(slot.job.id) == &slot && slot.job.id >= first());
    slot.job.id = 0;
    std::uint64_t first = this->first();
    while (first < next() && slot_of(first).job.id == 0) ++first;
    first_.store(first, order);
  }

  /// Calls a function for each job in flight, the oldest first. The function may remove the job.
  template <class Function>
  void for_each(Function function) {
    for (std::uint64_t id = first(); id < next(); ++id) {
      if (Slot* const slot = find(id)) function(*slot);
    }
  }

 private:
  std::vector<Slot> slots_;
  sys::Atomic<std::uint64_t> first_{1}, next_{1};
};

}  // namespace weir::rt
