// A matrix, its factors L and U, and operations on them on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "common/dense.hpp"
#include "common/reference_blas.hpp"
#include "common/workload.hpp"
#include "lu/lu_kernels.hpp"

namespace weir::apps {

/// P A = L U. L (below the diagonal, which is 1) and U share one matrix. Pivots are those of panels
/// of `panel` columns: row i was exchanged with row pivots[i], counted from 1 at the panel's top.
template <class T>
struct LuSystem {
  LuSystem(Matrix<T> matrix, std::size_t columns)
      : given(std::move(matrix)),
        factors(make_matrix<T>(given.rows(), given.rows(), 3)),
        pivots(given.rows()),
        panel(columns) {}

  Matrix<T> given, factors;
  std::vector<std::int32_t> pivots;
  std::size_t panel;

  std::size_t order() const noexcept { return given.rows(); }

  /// Returns the row of A that is row i of P A, for each i.
  std::vector<std::size_t> rows() const {
    std::vector<std::size_t> rows(order());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    for (std::size_t i = 0; i < order(); ++i) {
      std::swap(rows[i], rows[exchanged_row(i, pivots[i], panel, order())]);
    }
    return rows;
  }

  /// Returns X with A X = B.
  Matrix<T> solve(const Matrix<T>& rhs) const {
    Matrix<T> x = permuted(rhs, 0, rhs.columns());
    for (std::size_t c = 0; c < x.columns(); ++c) {
      T* const column = &x(0, c);
      for (std::size_t j = 0; j < order(); ++j) subtract(j, j + 1, order(), column);
      for (std::size_t j = order(); j-- > 0;) {
        column[j] /= factors(j, j);
        subtract(j, 0, j, column);
      }
    }
    return x;
  }

  /// As LAPACK's test of its own factorisation (dget01), in the Frobenius norm.
  Verification factor_error(const ReferenceBlas& blas) const {
    constexpr std::size_t kBlock = 256;
    const Matrix<T> lower = unit_lower();
    long double error = 0;
    for (std::size_t j = 0; j < order(); j += kBlock) {
      const std::size_t columns = std::min(kBlock, order() - j), end = j + columns;
      const Matrix<T> upper = upper_block(j, columns);
      Matrix<T> block = permuted(given, j, columns);
      blas.multiply<T>(order(), columns, end, T{-1}, {lower.data(), order()}, {upper.data(), end},
                       T{1}, block.data(), order());
      error = std::hypot(error, norm(block));
    }
    return {"|P A - L U| / (n eps |A|)", relative(error, norm(given) * rounding()), kLimit};
  }

  /// As LAPACK's test of its own solution (dget02).
  Verification solution_error(const ReferenceBlas& blas, const Matrix<T>& rhs,
                              const Matrix<T>& x) const {
    Matrix<T> residual(order(), rhs.columns());
    copy(rhs, residual);
    blas.multiply<T>(order(), rhs.columns(), order(), T{-1}, {given.data(), order()},
                     {x.data(), order()}, T{1}, residual.data(), order());
    return {"|A x - b| / (n eps |A| |x|)",
            relative(norm(residual), norm(given) * norm(x) * rounding()), kLimit};
  }

 private:
  static constexpr double kLimit = 30;  ///< of LAPACK's own tests

  double rounding() const {
    return static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(order());
  }

  /// Subtracts column[j] times rows [begin, end) of column j of the factors.
  void subtract(std::size_t j, std::size_t begin, std::size_t end, T* column) const {
    for (std::size_t i = begin; i < end; ++i) column[i] -= factors(i, j) * column[j];
  }

  /// P times some columns of a matrix.
  Matrix<T> permuted(const Matrix<T>& matrix, std::size_t first, std::size_t columns) const {
    const std::vector<std::size_t> order_of_rows = rows();
    Matrix<T> result(order(), columns);
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t i = 0; i < order(); ++i) result(i, j) = matrix(order_of_rows[i], first + j);
    }
    return result;
  }

  Matrix<T> unit_lower() const {
    Matrix<T> lower(order(), order());
    for (std::size_t j = 0; j < order(); ++j) {
      lower(j, j) = T{1};
      for (std::size_t i = j + 1; i < order(); ++i) lower(i, j) = factors(i, j);
    }
    return lower;
  }

  /// Columns [first, first + columns) of U, down to its diagonal.
  Matrix<T> upper_block(std::size_t first, std::size_t columns) const {
    Matrix<T> upper(first + columns, columns);
    for (std::size_t j = 0; j < columns; ++j) {
      std::copy_n(&factors(0, first + j), first + j + 1, &upper(0, j));
    }
    return upper;
  }
};

}  // namespace weir::apps
