// The items of a share and their work.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::rt {

/// An index space whose items are alike, or have work of their own.
class Items {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 48;

  /// `work` may be null: 1 each. Throws Error for too many, or work that is no positive number.
  Items(std::uint64_t count, const double* work);

  std::uint64_t count() const noexcept { return count_; }
  /// Of the items [first, end).
  double work(std::uint64_t first, std::uint64_t end) const noexcept {
    if (sums_.empty()) return static_cast<double>(end - first);
    return sums_[end] - sums_[first];
  }
  /// How many items from `first` have at most so much work, at least 1.
  std::uint64_t within(std::uint64_t first, double work) const noexcept;

 private:
  std::uint64_t count_;
  std::vector<double> sums_;  ///< work before each item
};

}  // namespace weir::rt
