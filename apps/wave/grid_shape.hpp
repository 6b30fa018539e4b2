// How a grid is in memory.
#pragma once

#include <cstddef>

namespace weir::apps {

/// Cells to each side that the Laplacian needs.
inline constexpr std::size_t kReach = 4;
/// Zeros before the first cell of a row, which are also behind the row before: enough for kReach,
/// and for cells on lines of a cache.
inline constexpr std::size_t kLead = 16;

/// Planes of n x n cells with zeros around them, rows of x in planes of y.
struct GridShape {
  std::size_t n;

  std::size_t row() const noexcept { return kLead + (n + kLead - 1) / kLead * kLead; }
  std::size_t plane() const noexcept { return row() * (n + 2 * kReach); }
  /// Where a cell is in its plane.
  std::size_t cell(std::size_t x, std::size_t y) const noexcept {
    return (y + kReach) * row() + x + kLead;
  }
};

}  // namespace weir::apps
