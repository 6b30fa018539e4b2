// The equations of a grid, their factor in fronts, and operations on them on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/dense.hpp"
#include "common/workload.hpp"
#include "sparse_cholesky/assembly_tree.hpp"

namespace weir::apps {

/// The Laplacian of a grid with zeros around it: 6 on the diagonal, -1 for each neighbour. The
/// columns of its factor L are in the fronts, their pivots' columns below the diagonal.
template <class T>
class SparseSystem {
 public:
  explicit SparseSystem(AssemblyTree given) : tree(std::move(given)) {
    for (const Front& front : tree.fronts) {
      fronts.emplace_back(front.order(), front.order());
      add_entries(front);
      add_map(front);
    }
    for (std::size_t parent = 0; parent < tree.fronts.size(); ++parent) {
      for (const std::size_t child : tree.fronts[parent].children) fill_map(parent, child);
    }
  }

  AssemblyTree tree;
  std::vector<Matrix<T>> fronts;  ///< in the order of the tree

  /// The entries of the pivots' columns of all fronts: their places, as row and column in the
  /// front, and values. Those of front f begin at first_entry[f] and are sorted by columns.
  std::vector<std::int32_t> places;
  std::vector<T> values;
  std::vector<std::size_t> first_entry = {0};
  /// Where the border of each front is in its parent, from first_of_map[f] on.
  std::vector<std::int32_t> map;
  std::vector<std::size_t> first_of_map = {0};

  std::size_t order() const noexcept { return tree.order(); }

  /// Returns X with A X = B, both with a row for each cell.
  Matrix<T> solve(const Matrix<T>& rhs) const {
    Matrix<T> x(rhs.rows(), rhs.columns());
    std::vector<T> column(order());
    for (std::size_t c = 0; c < rhs.columns(); ++c) {
      for (std::size_t i = 0; i < order(); ++i) column[i] = rhs(cell(i), c);
      for (std::size_t f = 0; f < fronts.size(); ++f) divide(f, column);
      for (std::size_t f = fronts.size(); f-- > 0;) divide_transposed(f, column);
      for (std::size_t i = 0; i < order(); ++i) x(cell(i), c) = column[i];
    }
    return x;
  }

  /// Returns |A x - b| relative to the rounding error.
  Verification solution_error(const Matrix<T>& rhs, const Matrix<T>& x) const {
    constexpr double kNormOfLaplacian = 12, kLimit = 30;
    double error = 0, size = 0;
    for (std::size_t c = 0; c < rhs.columns(); ++c) {
      for (std::size_t i = 0; i < order(); ++i) {
        double product = 6.0 * static_cast<double>(x(i, c));
        for_neighbours(i, tree.edge,
                       [&](std::size_t j) { product -= static_cast<double>(x(j, c)); });
        error = std::hypot(error, product - static_cast<double>(rhs(i, c)));
        size = std::hypot(size, static_cast<double>(x(i, c)));
      }
    }
    const double rounding = static_cast<double>(std::numeric_limits<T>::epsilon());
    return {"|A x - b| / (eps |A| |x|)", relative(error, rounding * kNormOfLaplacian * size),
            kLimit};
  }

 private:
  std::size_t cell(std::size_t row) const { return static_cast<std::size_t>(tree.cells[row]); }

  void add_entries(const Front& front) {
    for (std::size_t j = 0; j < front.pivots; ++j) {
      add_entry(j, j, T{6});
      std::vector<std::size_t> below;
      for_neighbours(cell(static_cast<std::size_t>(front.rows[j])), tree.edge,
                     [&](std::size_t neighbour) {
                       const std::int32_t row = tree.row_of[neighbour];
                       if (row > front.rows[j]) below.push_back(index_in(front, row));
                     });
      for (const std::size_t i : below) add_entry(i, j, T{-1});
    }
    first_entry.push_back(values.size());
  }

  void add_entry(std::size_t row, std::size_t column, T value) {
    places.push_back(static_cast<std::int32_t>(row));
    places.push_back(static_cast<std::int32_t>(column));
    values.push_back(value);
  }

  void add_map(const Front& front) {
    map.resize(map.size() + front.border());
    first_of_map.push_back(map.size());
  }

  void fill_map(std::size_t parent, std::size_t child) {
    const Front& front = tree.fronts[child];
    for (std::size_t i = 0; i < front.border(); ++i) {
      map[first_of_map[child] + i] =
          static_cast<std::int32_t>(index_in(tree.fronts[parent], front.rows[front.pivots + i]));
    }
  }

  static std::size_t index_in(const Front& front, std::int32_t row) {
    const auto found = std::lower_bound(front.rows.begin(), front.rows.end(), row);
    return static_cast<std::size_t>(found - front.rows.begin());
  }

  /// L y = b for the rows of one front.
  void divide(std::size_t f, std::vector<T>& x) const {
    const Front& front = tree.fronts[f];
    const Matrix<T>& l = fronts[f];
    for (std::size_t j = 0; j < front.pivots; ++j) {
      T& pivot = x[row(front, j)];
      pivot /= l(j, j);
      for (std::size_t i = j + 1; i < front.order(); ++i) x[row(front, i)] -= l(i, j) * pivot;
    }
  }

  /// L^T x = y for the rows of one front.
  void divide_transposed(std::size_t f, std::vector<T>& x) const {
    const Front& front = tree.fronts[f];
    const Matrix<T>& l = fronts[f];
    for (std::size_t j = front.pivots; j-- > 0;) {
      T& pivot = x[row(front, j)];
      for (std::size_t i = j + 1; i < front.order(); ++i) pivot -= l(i, j) * x[row(front, i)];
      pivot /= l(j, j);
    }
  }

  static std::size_t row(const Front& front, std::size_t i) {
    return static_cast<std::size_t>(front.rows[i]);
  }
};

}  // namespace weir::apps
