// The items of a share and their work.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::rt {

/// An index space whose items have equal work or one weight each.
class Items {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 48;

  /// `work` has `count` elements; null: 1 each. Throws Error for too many items, or work that is
  /// not a positive number.
  Items(std::uint64_t count, const double* work);

  std::uint64_t count() const noexcept { return count_; }
  /// Returns the work of the items [first, end).
  double work(std::uint64_t first, std::uint64_t end) const noexcept {
    if (sums_.empty()) return static_cast<double>(end - first);
    return sums_[end] - sums_[first];
  }
  /// Returns the number of items from `first` that have at most this work, at least 1.
  std::uint64_t within(std::uint64_t first, double work) const noexcept;

 private:
  std::uint64_t count_;
  std::vector<double> sums_;  ///< prefix sums of the work
};

}  // namespace weir::rt
