// Counting items so that the end can be seen exactly.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// Items of one kind that one thread created and completed. Only that thread counts, with plain
/// stores; both numbers only grow.
class Count {
 public:
  /// Before anybody else can see the items, and before those that put them are complete.
  void create(std::uint64_t items) noexcept {
    created_.store(created_.load(std::memory_order_relaxed) + items, std::memory_order_relaxed);
  }
  /// After all that they put was counted.
  void complete(std::uint64_t items) noexcept {
    completed_.store(completed_.load(std::memory_order_relaxed) + items, std::memory_order_release);
  }

  /// What another thread counted that counts no more, while nobody looks at either.
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

/// Whether all items are complete, when nothing but an item can create one any more. each(visit)
/// visits the counts of all threads.
///
/// What is complete is read before what was created. Let the first wave end at t: it saw no more
/// than the C(t) that were complete then, and the second wave sees no less than the E(t) that were
/// created by then; C(t) <= E(t) always. If both are equal, then C(t) = E(t): nobody holds an item
/// at t, and nobody can create one. The other order is wrong: an item seen as created may complete,
/// and be seen to, while one that it created is not seen. (Mattern 1987; shown for all schedules in
/// tests/relacy and tests/scheduled.)
template <class Each>
bool balanced(Each&& each) noexcept {
  std::uint64_t completed = 0, created = 0;
  each([&](const Count& count) { completed += count.completed(); });
  each([&](const Count& count) { created += count.created(); });
  return completed == created;
}

}  // namespace weir::rt
