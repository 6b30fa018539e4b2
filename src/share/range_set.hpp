// The set of completed items of a share.
#pragma once

#include <cstdint>
#include <map>

namespace weir::rt {

/// Consecutive items; none if `count` is 0.
struct ItemRange {
  std::uint64_t first, count;
};

/// A set of items, stored as few ranges. One thread at a time.
class RangeSet {
 public:
  /// Adds all items of a range. Returns false, and adds none, if one of them is in the set. Throws
  /// std::bad_alloc and then changes nothing.
  bool add(const ItemRange& range);

  /// Calls visit(ItemRange) for the missing items of [0, items), in order, until it returns false.
  template <class Visit>
  void for_each_gap(std::uint64_t items, const Visit& visit) const {
    std::uint64_t next = 0;
    for (const auto& [first, end] : ends_) {
      if (first > next && !visit(ItemRange{next, first - next})) return;
      next = end;
    }
    if (next < items) visit(ItemRange{next, items - next});
  }

 private:
  /// End of each range by its first item; ranges are not adjacent.
  std::map<std::uint64_t, std::uint64_t> ends_;
};

}  // namespace weir::rt
