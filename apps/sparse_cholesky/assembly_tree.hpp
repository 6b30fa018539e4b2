// The order in which a grid is eliminated, and the dense fronts that this gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::apps {

/// A supernode: a dense symmetric matrix whose first rows are eliminated together. What is left of
/// it, its contribution, is added to the front of its parent.
struct Front {
  std::size_t pivots = 0;             ///< rows eliminated here
  std::vector<std::int32_t> rows;     ///< their numbers, ascending: the pivots, then the border
  std::vector<std::size_t> children;  ///< indices of fronts

  std::size_t order() const noexcept { return rows.size(); }
  std::size_t border() const noexcept { return order() - pivots; }
  /// Floating-point operations of the elimination.
  double operations() const noexcept;
};

/// A nested dissection of a grid of n x n x n cells, each coupled with its six neighbours. Rows are
/// numbered in the order of elimination, cells with x fastest.
struct AssemblyTree {
  std::vector<Front> fronts;         ///< children before parents
  std::vector<std::int32_t> cells;   ///< cell of each row
  std::vector<std::int32_t> row_of;  ///< row of each cell
  std::size_t edge = 0;              ///< n

  /// Rows of the matrix.
  std::size_t order() const noexcept { return cells.size(); }
  /// Rows of the largest front.
  std::size_t largest_front() const noexcept;
  /// Elements of all fronts, as squares.
  std::size_t elements() const noexcept;
  double operations() const noexcept;
};

/// Halves the grid by planes until boxes have `leaf` cells at most. n^3 must fit 31 bits.
AssemblyTree dissect_grid(std::size_t n, std::size_t leaf);

/// Calls visit(neighbour) for each of the up to six neighbours of a cell.
template <class Visit>
void for_neighbours(std::size_t cell, std::size_t n, const Visit& visit) {
  const std::size_t x = cell % n, y = cell / n % n, z = cell / n / n;
  if (x > 0) visit(cell - 1);
  if (x + 1 < n) visit(cell + 1);
  if (y > 0) visit(cell - n);
  if (y + 1 < n) visit(cell + n);
  if (z > 0) visit(cell - n * n);
  if (z + 1 < n) visit(cell + n * n);
}

}  // namespace weir::apps
