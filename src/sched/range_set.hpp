// Which items of a share are done.
#pragma once

#include <cstdint>
#include <map>

namespace weir::rt {

/// Neighbouring items, of which count 0 are none.
struct ItemRange {
  std::uint64_t first, count;
};

/// Items, as few ranges. One thread at a time.
class RangeSet {
 public:
  /// Adds all of the items. Returns false, and adds none, when one of them is there already. Throws
  /// std::bad_alloc, which leaves the set as it was.
  bool add(const ItemRange& range);

  /// Calls visit(ItemRange) for what is missing of [0, items), in order, until it returns false.
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
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< of ranges that do not touch, by their first
};

}  // namespace weir::rt
