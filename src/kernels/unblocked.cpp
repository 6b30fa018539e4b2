#include "kernels/unblocked.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace weir::kernels {

template <class T>
int unblocked_potrf(Uplo uplo, Matrix<T> a) {
  // The upper factor is the transpose of the lower one: exchange the strides.
  const std::ptrdiff_t stride = a.stride;
  const std::ptrdiff_t down = uplo == Uplo::lower ? 1 : stride;
  const std::ptrdiff_t right = uplo == Uplo::lower ? stride : 1;
  const auto at = [&](int i, int j) -> T& { return a.data[i * down + j * right]; };
  for (int j = 0; j < a.columns; ++j) {
    if (!(at(j, j) > T{0})) return j + 1;
    const T root = at(j, j) = std::sqrt(at(j, j));
    for (int i = j + 1; i < a.rows; ++i) at(i, j) /= root;
    for (int k = j + 1; k < a.columns; ++k) {
      for (int i = k; i < a.rows; ++i) at(i, k) -= at(i, j) * at(k, j);
    }
  }
  return 0;
}

template <class T>
int unblocked_getrf(Matrix<T> a, std::int32_t* pivots) {
  int first_zero = 0;
  for (int j = 0; j < std::min(a.rows, a.columns); ++j) {
    T* const column = a.column(j);
    const auto smaller = [](T x, T y) { return std::abs(x) < std::abs(y); };
    const auto pivot = std::max_element(column + j, column + a.rows, smaller) - column;
    pivots[j] = static_cast<std::int32_t>(pivot) + 1;
    if (column[pivot] == T{0}) {
      if (first_zero == 0) first_zero = j + 1;
      continue;
    }
    for (int k = 0; k < a.columns; ++k) std::swap(a(j, k), a(static_cast<int>(pivot), k));
    for (int i = j + 1; i < a.rows; ++i) column[i] /= column[j];
    for (int k = j + 1; k < a.columns; ++k) {
      const T factor = a(j, k);
      for (int i = j + 1; i < a.rows; ++i) a(i, k) -= column[i] * factor;
    }
  }
  return first_zero;
}

template <class T>
void exchange_rows(Matrix<T> a, const std::int32_t* pivots, int count) {
  for (int j = 0; j < a.columns; ++j) {
    T* const column = a.column(j);
    for (int i = 0; i < count; ++i) std::swap(column[i], column[pivots[i] - 1]);
  }
}

template int unblocked_potrf(Uplo, Matrix<float>);
template int unblocked_potrf(Uplo, Matrix<double>);
template int unblocked_getrf(Matrix<float>, std::int32_t*);
template int unblocked_getrf(Matrix<double>, std::int32_t*);
template void exchange_rows(Matrix<float>, const std::int32_t*, int);
template void exchange_rows(Matrix<double>, const std::int32_t*, int);

}  // namespace weir::kernels
