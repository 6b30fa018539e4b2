// Making and measuring dense matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

#include "common/input_error.hpp"
#include "common/matrix.hpp"
#include "common/matrix_io.hpp"

namespace weir::apps {

/// Throws InputError when `matrices` of a size do not fit the machine's memory.
template <class T>
void check_room(std::size_t rows, std::size_t columns, std::size_t matrices) {
  const double needed = static_cast<double>(rows) * static_cast<double>(columns) *
                        static_cast<double>(matrices * sizeof(T));
  const double available = 2.0 * static_cast<double>(half_of_memory());
  if (needed > available) {
    fail_input(
        "a problem of {} x {} needs {:.1f} GiB of memory and the machine has {:.1f}: "
        "choose a smaller --n",
        rows, columns, needed / 0x1p30, available / 0x1p30);
  }
}

/// Makes a matrix of zeros. Throws InputError when `matrices` of its size, which the problem needs,
/// do not fit the machine's memory.
template <class T>
Matrix<T> make_matrix(std::size_t rows, std::size_t columns, std::size_t matrices) {
  check_room<T>(rows, columns, matrices);
  return Matrix<T>(rows, columns);
}

/// The same for a matrix of which tiles are used: columns are an odd number of cache lines apart,
/// so that those of a tile do not share a few sets of the cache when the order is a round number.
template <class T>
Matrix<T> make_matrix_of_tiles(std::size_t rows, std::size_t columns, std::size_t matrices) {
  constexpr std::size_t kLine = Matrix<T>::alignment / sizeof(T);
  check_room<T>(rows, columns, matrices);
  return Matrix<T>(rows, columns, ((rows + kLine - 1) / kLine | 1) * kLine);
}

/// Copies the elements of a matrix to another one of its size.
template <class T>
void copy(const Matrix<T>& from, Matrix<T>& to) {
  for (std::size_t j = 0; j < from.columns(); ++j) {
    std::copy_n(from.data() + j * from.leading_dimension(), from.rows(),
                to.data() + j * to.leading_dimension());
  }
}

/// Fills a matrix with numbers in [-1/2, 1/2), the same for the same seed.
template <class T>
void fill_random(Matrix<T>& matrix, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::generate_n(matrix.data(), matrix.size(), [&] {
    return static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5);
  });
}

/// Fills a square matrix so that it is symmetric and, by its dominant diagonal, positive definite.
template <class T>
void fill_positive_definite(Matrix<T>& matrix, std::uint64_t seed) {
  fill_random(matrix, seed);
  const std::size_t n = matrix.rows();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < j; ++i) matrix(i, j) = matrix(j, i);
    matrix(j, j) += static_cast<T>(n);
  }
}

/// Throws InputError with the first pair of elements that differ by more than rounding.
template <class T>
void check_symmetric(const Matrix<T>& matrix, const std::string& name) {
  if (matrix.rows() != matrix.columns()) {
    fail_input("{}: the matrix is {} x {}: expected a square", name, matrix.rows(),
               matrix.columns());
  }
  constexpr T kTolerance = 64 * std::numeric_limits<T>::epsilon();
  for (std::size_t j = 0; j < matrix.columns(); ++j) {
    for (std::size_t i = j + 1; i < matrix.rows(); ++i) {
      const T below = matrix(i, j), above = matrix(j, i);
      if (std::abs(below - above) <= kTolerance * (std::abs(below) + std::abs(above))) continue;
      if (below == above || (std::isnan(below) && std::isnan(above))) continue;
      fail_input(
          "{}: the matrix is not symmetric: row {}, column {} holds {}, and the other way "
          "round {}",
          name, i + 1, j + 1, below, above);
    }
  }
}

/// Returns the Frobenius norm of a column-major block. The squares of the largest and of the least
/// double fit a long double, and so do products of norms.
template <class T>
long double norm(const T* data, std::size_t rows, std::size_t columns, std::size_t stride) {
  long double sum = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < rows; ++i) {
      const long double x = data[i + j * stride];
      sum += x * x;
    }
  }
  return std::sqrt(sum);
}

template <class T>
long double norm(const Matrix<T>& matrix) {
  return norm(matrix.data(), matrix.rows(), matrix.columns(), matrix.leading_dimension());
}

/// Returns an error relative to a scale, which may be zero when the error is: the solution for a
/// zero right-hand side is zero.
inline double relative(long double error, long double scale) {
  return error == 0 ? 0 : static_cast<double>(error / scale);
}

/// Returns the edge of a tile: as asked for, or `usual`.
inline std::size_t choose_tile(std::size_t n, std::size_t tile, std::size_t tiles,
                               std::size_t usual) {
  if (tiles > 0) return (n + tiles - 1) / tiles;
  return std::min(n, tile > 0 ? tile : usual);
}

}  // namespace weir::apps
