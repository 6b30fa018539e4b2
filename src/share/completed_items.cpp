#include "share/completed_items.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace weir::rt {

CompletedItems::CompletedItems(std::uint64_t items, void* results, const std::size_t* offsets)
    : items_(items), results_(static_cast<std::byte*>(results)) {
  if ((results == nullptr) != (offsets == nullptr)) {
    fail_argument("a share has results and their offsets, or neither: {} is NULL",
                  results == nullptr ? "results" : "result_offsets");
  }
  if (results == nullptr) return;
  offsets_.assign(offsets, offsets + items + 1);
  const auto wrong = std::is_sorted_until(offsets_.begin(), offsets_.end());
  if (wrong != offsets_.end()) {
    fail_argument("result offset {} is less than the one before it", wrong - offsets_.begin());
  }
}

bool CompletedItems::add(const ItemRange& range, std::span<const std::byte> results,
                         std::int64_t now_ns) {
  if (refuses_repeated_) {
    const SpinGuard guard(ranges_lock_);
    if (!ranges_.add(range)) return false;
  }
  if (!results.empty()) std::memcpy(results_of(range).data(), results.data(), results.size());
  if (count_.fetch_add(range.count) + range.count == items_) ended_ns_.store(now_ns);
  return true;
}

std::span<std::byte> CompletedItems::results_of(const ItemRange& range) const noexcept {
  if (results_ == nullptr) return {};
  const std::size_t first = offsets_[range.first];
  return {results_ + first, offsets_[range.first + range.count] - first};
}

}  // namespace weir::rt
