// Views of column-major matrices; they do not own the memory.
#pragma once

#include <cstddef>
#include <type_traits>

namespace weir::kernels {

/// rows x columns elements; element (i, j) is data[i + j * stride].
template <class T>
struct Matrix {
  T* data;
  int rows;
  int columns;
  int stride;  ///< elements between columns, at least rows

  operator Matrix<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data, rows, columns, stride};
  }

  T* column(int j) const noexcept { return data + std::ptrdiff_t{j} * stride; }
  T& operator()(int i, int j) const noexcept { return column(j)[i]; }
  Matrix block(int i, int j, int block_rows, int block_columns) const noexcept {
    return {column(j) + i, block_rows, block_columns, stride};
  }
  bool empty() const noexcept { return rows == 0 || columns == 0; }
};

/// A matrix that is only read, in functions that deduce T from the one they write.
template <class T>
using Input = std::type_identity_t<Matrix<const T>>;

/// A scalar in such functions.
template <class T>
using Scalar = std::type_identity_t<T>;

}  // namespace weir::kernels
