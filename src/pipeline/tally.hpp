// Termination detection: counts of created and completed items.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Items of one kind that one thread created and completed. Only that thread counts, with plain
/// stores; both numbers only grow.
class Count {
 public:
  /// Counts created items. Call it before another thread can see them, and before the items that
  /// created them are complete.
  void create(std::uint64_t items) noexcept {
    created_.store(created_.load(std::memory_order_relaxed) + items, std::memory_order_relaxed);
  }
  /// Counts completed items. Call it after all items that they put are counted.
  void complete(std::uint64_t items) noexcept {
    completed_.store(completed_.load(std::memory_order_relaxed) + items, std::memory_order_release);
  }

  /// Adds the final counts of another object, while no thread reads either.
  void add(const Count& other) noexcept {
    create(other.created());
    complete(other.completed());
  }

  std::uint64_t created() const noexcept { return created_.load(std::memory_order_acquire); }
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }

 private:
  sys::Atomic<std::uint64_t> created_{0};
  sys::Atomic<std::uint64_t> completed_{0};
};

/// Whether all items are complete, given that only items can create items. each(visit) visits the
/// counts of all threads.
///
/// The first wave reads completed items, the second created items. Let the first wave end at t: it
/// read at most C(t), the items complete at t, and the second wave reads at least E(t), the items
/// created by t; C(t) <= E(t) always. If both sums are equal, then C(t) = E(t): no thread holds an
/// item at t, and no thread can create one. The other order is wrong: an item that was read as
/// created may complete and be read as complete, while an item that it created is not read.
/// (Mattern 1987; shown for all schedules in tests/relacy and tests/scheduled.)
template <class Each>
bool balanced(Each&& each) noexcept {
  std::uint64_t completed = 0, created = 0;
  each([&](const Count& count) { completed += count.completed(); });
  each([&](const Count& count) { created += count.created(); });
  return completed == created;
}

}  // namespace weir::rt
