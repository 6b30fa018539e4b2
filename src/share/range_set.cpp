#include "share/range_set.hpp"

#include <iterator>

namespace weir::rt {

bool RangeSet::add(const ItemRange& range) {
  if (range.count == 0) return true;
  const std::uint64_t end = range.first + range.count;
  const auto after = ends_.upper_bound(range.first);
  const bool follows = after != ends_.begin() && std::prev(after)->second >= range.first;
  if (follows && std::prev(after)->second > range.first) return false;
  const bool precedes = after != ends_.end() && after->first <= end;
  if (precedes && after->first < end) return false;
  const std::uint64_t reach = precedes ? after->second : end;
  if (follows) {
    std::prev(after)->second = reach;
  } else {
    ends_.emplace_hint(after, range.first, reach);
  }
  if (precedes) ends_.erase(after);
  return true;
}

}  // namespace weir::rt
