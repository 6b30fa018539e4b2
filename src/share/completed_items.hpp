// The completed items of a share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "share/range_set.hpp"

namespace weir::rt {

/// Counts completed items, and stores the results that other ranks send. Any thread.
class CompletedItems {
 public:
  /// `offsets` has one element more than there are items. Both pointers may be null. Throws Error.
  CompletedItems(std::uint64_t items, void* results, const std::size_t* offsets);
  /// Called on the root before the first add(): ranks may complete items twice.
  void refuse_repeated() noexcept { refuses_repeated_ = true; }

  /// Adds items that are complete now, with the results that another rank sent. Returns false, and
  /// does nothing, if some of them were complete before and that is refused. Throws std::bad_alloc.
  bool add(const ItemRange& range, std::span<const std::byte> results, std::int64_t now_ns);
  /// Ends the share, unless all items are complete already.
  void end(std::int64_t now_ns) noexcept {
    if (ended_ns() < 0) ended_ns_.store(now_ns);
  }

  std::uint64_t count() const noexcept { return count_.load(); }
  bool are_all() const noexcept { return count() == items_; }
  /// Returns when all items were complete or the share ended, before that -1.
  std::int64_t ended_ns() const noexcept { return ended_ns_.load(); }
  std::span<std::byte> results_of(const ItemRange& range) const noexcept;
  /// Calls visit(ItemRange) for the missing items, in order, until it returns false. On the root.
  template <class Visit>
  void for_each_gap(const Visit& visit) const {
    const SpinGuard guard(ranges_lock_);
    ranges_.for_each_gap(items_, visit);
  }

 private:
  const std::uint64_t items_;
  std::byte* const results_;
  std::vector<std::size_t> offsets_;
  bool refuses_repeated_ = false;
  sys::Atomic<std::uint64_t> count_{0};
  sys::Atomic<std::int64_t> ended_ns_{-1};
  mutable SpinLock ranges_lock_;
  RangeSet ranges_ WEIR_GUARDED_BY(ranges_lock_);  ///< empty unless repeated items are refused
};

}  // namespace weir::rt
