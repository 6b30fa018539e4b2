#include "share/items.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace weir::rt {

Items::Items(std::uint64_t count, const double* work) : count_(count) {
  if (count > kMost) fail_argument("{} items are too many: at most {}", count, kMost);
  if (work == nullptr) return;
  sums_.reserve(count + 1);
  sums_.push_back(0);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!(work[i] > 0) || !std::isfinite(sums_.back() + work[i])) {
      fail_argument("work {} of item {} is not a positive number", work[i], i);
    }
    sums_.push_back(sums_.back() + work[i]);
  }
}

std::uint64_t Items::within(std::uint64_t first, double work) const noexcept {
  const std::uint64_t remaining = count_ - first;
  if (!(work > 1) && sums_.empty()) return 1;
  if (sums_.empty()) {
    return work < static_cast<double>(remaining) ? static_cast<std::uint64_t>(work) : remaining;
  }
  const auto begin = sums_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = std::upper_bound(begin, sums_.end(), *begin + std::max(work, 0.0));
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(end - begin) - 1, 1, remaining);
}

}  // namespace weir::rt
