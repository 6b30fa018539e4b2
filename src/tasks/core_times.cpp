#include "tasks/core_times.hpp"

#include <algorithm>

namespace weir::rt {

void CoreTimes::occupy(std::int64_t from_ns, std::int64_t run_ns) noexcept {
  const std::int64_t end_ns = std::max(free_ns_.front(), from_ns) + run_ns;
  std::size_t at = 0;
  for (std::size_t child = 1; child < free_ns_.size(); child = 2 * at + 1) {
    if (child + 1 < free_ns_.size() && free_ns_[child + 1] < free_ns_[child]) ++child;
    if (free_ns_[child] >= end_ns) break;
    free_ns_[at] = free_ns_[child];
    at = child;
  }
  free_ns_[at] = end_ns;
}

}  // namespace weir::rt
