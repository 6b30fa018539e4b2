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

std::int64_t CoreTimes::all_free_ns() const noexcept { return std::ranges::max(free_ns_); }

void CoreTimes::occupy_all(std::int64_t from_ns, std::int64_t run_ns) noexcept {
  std::ranges::fill(free_ns_, std::max(all_free_ns(), from_ns) + run_ns);
}

}  // namespace weir::rt
