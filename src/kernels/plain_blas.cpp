#include "kernels/plain_blas.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/matrix.hpp"

namespace weir::kernels {
namespace {

constexpr int kRows = 128, kDepth = 64, kTriangle = 32;

/// Element (i, j) of op(A).
template <class T>
T element(Matrix<const T> a, Trans trans, int i, int j) {
  return trans == Trans::no ? a(i, j) : a(j, i);
}

/// C += A B for a block A of `depth` columns of kRows elements, and B of `depth` rows.
template <class T>
[[gnu::always_inline]] inline void add_block(const T* a, int depth, Matrix<const T> b,
                                             Matrix<T> c) {
  for (int j = 0; j < c.columns; ++j) {
    T* const out = c.column(j);
    int k = 0;
    for (; k + 4 <= depth; k += 4) {
      const T b0 = b(k, j), b1 = b(k + 1, j), b2 = b(k + 2, j), b3 = b(k + 3, j);
      const T* const a0 = a + k * kRows;
      for (int i = 0; i < c.rows; ++i) {
        out[i] += a0[i] * b0 + a0[kRows + i] * b1 + a0[2 * kRows + i] * b2 + a0[3 * kRows + i] * b3;
      }
    }
    for (; k < depth; ++k) {
      for (int i = 0; i < c.rows; ++i) out[i] += a[k * kRows + i] * b(k, j);
    }
  }
}

template <class T>
using AddBlock = void (*)(const T*, int, Matrix<const T>, Matrix<T>);

template <class T>
void add_block_anywhere(const T* a, int depth, Matrix<const T> b, Matrix<T> c) {
  add_block(a, depth, b, c);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void add_block_avx2(const T* a, int depth, Matrix<const T> b,
                                                Matrix<T> c) {
  add_block(a, depth, b, c);
}
#endif

template <class T>
AddBlock<T> add_block_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return add_block_avx2<T>;
#endif
  return add_block_anywhere<T>;
}

/// C += alpha op(A) op(B). Copies a block of each to memory without gaps, A with alpha.
template <class T>
void add_product(Trans trans_a, Trans trans_b, T alpha, Matrix<const T> a, Matrix<const T> b,
                 int depth, Matrix<T> c) {
  static const AddBlock<T> add = add_block_here<T>();
  std::array<T, kRows * kDepth> left_block;
  std::array<T, kDepth * kTriangle> right_block;
  T* const left = left_block.data();
  T* const right = right_block.data();
  for (int k = 0; k < depth; k += kDepth) {
    const int deep = std::min(kDepth, depth - k);
    for (int i = 0; i < c.rows; i += kRows) {
      const int high = std::min(kRows, c.rows - i);
      for (int p = 0; p < deep; ++p) {
        for (int r = 0; r < high; ++r) {
          left[p * kRows + r] = alpha * element(a, trans_a, i + r, k + p);
        }
      }
      for (int j = 0; j < c.columns; j += kTriangle) {
        const int wide = std::min(kTriangle, c.columns - j);
        for (int q = 0; q < wide; ++q) {
          for (int p = 0; p < deep; ++p) right[q * kDepth + p] = element(b, trans_b, k + p, j + q);
        }
        add(left, deep, {right, deep, wide, kDepth}, c.block(i, j, high, wide));
      }
    }
  }
}

template <class T>
void scale(Matrix<T> c, T beta) {
  if (beta == T{1}) return;
  for (int j = 0; j < c.columns; ++j) {
    T* const column = c.column(j);
    for (int i = 0; i < c.rows; ++i) column[i] = beta == T{0} ? T{0} : beta * column[i];
  }
}

template <class T>
void gemm(Order, Trans trans_a, Trans trans_b, int m, int n, int k, T alpha, const T* a, int lda,
          const T* b, int ldb, T beta, T* c, int ldc) {
  const Matrix<T> result{c, m, n, ldc};
  scale(result, beta);
  if (alpha == T{0}) return;
  add_product<T>(trans_a, trans_b, alpha, {a, 0, 0, lda}, {b, 0, 0, ldb}, k, result);
}

/// Blocks of columns: what is above or below the diagonal block is a product, the triangle on the
/// diagonal is copied from one.
template <class T>
void syrk(Order, Uplo uplo, Trans trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c,
          int ldc) {
  const Trans other = trans == Trans::no ? Trans::yes : Trans::no;
  const auto rows_from = [&](int i) {
    return trans == Trans::no ? a + i : a + std::ptrdiff_t{i} * lda;
  };
  const Matrix<T> result{c, n, n, ldc};
  for (int j = 0; j < n; j += kTriangle) {
    const int wide = std::min(kTriangle, n - j);
    const auto product = [&](int i, int high, T factor, Matrix<T> block) {
      gemm<T>(Order::column_major, trans, other, high, wide, k, alpha, rows_from(i), lda,
              rows_from(j), lda, factor, block.data, block.stride);
    };
    if (uplo == Uplo::lower && j + wide < n) {
      product(j + wide, n - j - wide, beta, result.block(j + wide, j, 0, 0));
    } else if (uplo == Uplo::upper && j > 0) {
      product(0, j, beta, result.block(0, j, 0, 0));
    }
    std::array<T, kTriangle * kTriangle> block;
    T* const square = block.data();
    product(j, wide, T{0}, {square, wide, wide, kTriangle});
    for (int q = 0; q < wide; ++q) {
      const int first = uplo == Uplo::lower ? q : 0, end = uplo == Uplo::lower ? wide : q + 1;
      for (int p = first; p < end; ++p) {
        T& out = result(j + p, j + q);
        out = square[q * kTriangle + p] + (beta == T{0} ? T{0} : beta * out);
      }
    }
  }
}

/// Solves with a triangle of order kTriangle at most, by substitution; `step` and `across` are the
/// distances in B along the order of the triangle and across it.
template <class T, class At>
void substitute(int order, bool forward, bool unit, const At& at, T* b, std::ptrdiff_t step,
                std::ptrdiff_t across, int count) {
  for (int s = 0; s < order; ++s) {
    const int i = forward ? s : order - 1 - s;
    for (int t = 0; t < s; ++t) {
      const int k = forward ? t : order - 1 - t;
      const T factor = at(i, k);
      for (int j = 0; j < count; ++j) b[i * step + j * across] -= factor * b[k * step + j * across];
    }
    if (unit) continue;
    const T diagonal = at(i, i);
    for (int j = 0; j < count; ++j) b[i * step + j * across] /= diagonal;
  }
}

/// Solves op(A) X = B by blocks of rows of X, X op(A) = B by blocks of its columns: a block loses
/// the product of what is solved with op(A), then it is solved with the triangle on the diagonal.
template <class T>
void trsm(Order, Side side, Uplo uplo, Trans trans, Diag diag, int m, int n, T alpha, const T* a,
          int lda, T* b, int ldb) {
  const Matrix<T> result{b, m, n, ldb};
  const Matrix<const T> triangle{a, 0, 0, lda};
  scale(result, alpha);
  if (alpha == T{0}) return;
  const bool left = side == Side::left;
  const int order = left ? m : n;
  // Is op(A) x = b solved from its first row, or x op(A) = b from its first column?
  const bool forward = ((uplo == Uplo::lower) == (trans == Trans::no)) == left;
  const auto op_block = [&](int i, int j) {
    return trans == Trans::no ? triangle.block(i, j, 0, 0) : triangle.block(j, i, 0, 0);
  };
  const int blocks = (order + kTriangle - 1) / kTriangle;
  for (int s = 0; s < blocks; ++s) {
    const int i = (forward ? s : blocks - 1 - s) * kTriangle;
    const int size = std::min(kTriangle, order - i);
    const int solved = forward ? 0 : i + size, depth = forward ? i : order - i - size;
    if (left) {
      if (depth > 0) {
        add_product<T>(trans, Trans::no, T{-1}, op_block(i, solved), result.block(solved, 0, 0, 0),
                       depth, result.block(i, 0, size, n));
      }
      substitute(
          size, forward, diag == Diag::unit,
          [&](int r, int c) { return element(triangle, trans, i + r, i + c); }, b + i, 1, ldb, n);
    } else {
      if (depth > 0) {
        add_product<T>(Trans::no, trans, T{-1}, result.block(0, solved, 0, 0), op_block(solved, i),
                       depth, result.block(0, i, m, size));
      }
      substitute(
          size, forward, diag == Diag::unit,
          [&](int r, int c) { return element(triangle, trans, i + c, i + r); }, result.column(i),
          ldb, 1, m);
    }
  }
}

}  // namespace

template <class T>
Blas<T> plain_blas() noexcept {
  return {gemm<T>, syrk<T>, trsm<T>, nullptr, nullptr};
}

template Blas<float> plain_blas() noexcept;
template Blas<double> plain_blas() noexcept;

}  // namespace weir::kernels
