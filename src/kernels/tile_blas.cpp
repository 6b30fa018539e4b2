#include "kernels/tile_blas.hpp"

#include <algorithm>

#include "kernels/packed_blas.hpp"
#include "kernels/unblocked.hpp"

namespace weir::kernels {

namespace {

// Where packing began to pay in measurements with OpenBLAS 0.3.21 (SkylakeX).
constexpr int kLeastVectors = 32;  ///< right-hand sides of a triangle
constexpr int kLeastDepth = 64;    ///< of the product that updates a triangle
constexpr int kLeastOrder = 33;    ///< of a matrix to factor

constexpr int kUnblockedOrder = 32;

/// With alpha 0 nothing must be read; some libraries violate this for small matrices.
template <class T>
int depth_read(T alpha, int depth) {
  return alpha == T{0} ? 0 : depth;
}

/// Half of an order, rounded up to whole blocks.
int half_of(int order) {
  constexpr int kUnit = 32;
  return (order / 2 + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

template <class T>
void TileBlas<T>::gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<const T> a, Matrix<const T> b,
                       T beta, Matrix<T> c) const {
  const int depth = trans_a == Trans::no ? a.columns : a.rows;
  blas_.gemm(Order::column_major, trans_a, trans_b, c.rows, c.columns, depth_read(alpha, depth),
             alpha, a.data, a.stride, b.data, b.stride, beta, c.data, c.stride);
}

template <class T>
void TileBlas<T>::syrk(Uplo uplo, Trans trans, T alpha, Matrix<const T> a, T beta,
                       Matrix<T> c) const {
  const int order = c.rows, depth = depth_read(alpha, trans == Trans::no ? a.columns : a.rows);
  if (packs_ && trans == Trans::no && order <= kPackedOrder && depth >= kLeastDepth) {
    packed_syrk(blas_, uplo, alpha, a, beta, c);
  } else {
    blas_.syrk(Order::column_major, uplo, trans, order, depth, alpha, a.data, a.stride, beta,
               c.data, c.stride);
  }
}

template <class T>
void TileBlas<T>::trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<const T> a,
                       Matrix<T> b) const {
  if (alpha == T{0}) {  // A is not read
    for (int j = 0; j < b.columns; ++j) std::fill_n(b.column(j), b.rows, T{0});
    return;
  }
  const bool left = side == Side::left;
  const int order = a.rows;
  if (!packs_ || (left ? b.columns : b.rows) < kLeastVectors) {
    blas_.trsm(Order::column_major, side, uplo, trans, diag, b.rows, b.columns, alpha, a.data,
               a.stride, b.data, b.stride);
    return;
  }
  if (order <= kPackedOrder) return packed_trsm(blas_, side, uplo, trans, diag, alpha, a, b);
  const int half = half_of(order), rest = order - half;
  const auto part = [&](bool top) {
    const int first = top ? 0 : half, count = top ? half : rest;
    return left ? b.block(first, 0, count, b.columns) : b.block(0, first, b.rows, count);
  };
  const auto solve = [&](bool top, T factor) {
    const int first = top ? 0 : half, count = top ? half : rest;
    trsm(side, uplo, trans, diag, factor, a.block(first, first, count, count), part(top));
  };
  // The part of X that does not depend on the other.
  const bool top_first = ((uplo == Uplo::lower) == (trans == Trans::no)) == left;
  const Matrix<const T> coupling =
      uplo == Uplo::lower ? a.block(half, 0, rest, half) : a.block(0, half, half, rest);
  solve(top_first, alpha);
  if (left) {
    gemm(trans, Trans::no, T{-1}, coupling, part(top_first), alpha, part(!top_first));
  } else {
    gemm(Trans::no, trans, T{-1}, part(top_first), coupling, alpha, part(!top_first));
  }
  solve(!top_first, T{1});
}

template <class T>
int TileBlas<T>::potrf(Uplo uplo, Matrix<T> a) const {
  const int order = a.rows;
  if (blas_.potrf != nullptr && !(packs_ && order >= kLeastOrder)) {
    int info = 0;
    blas_.potrf(uplo == Uplo::lower ? "L" : "U", &order, a.data, &a.stride, &info, 1);
    return info;
  }
  if (packs_ && order <= kPackedOrder) return packed_potrf(blas_, uplo, a);
  if (order <= kUnblockedOrder) return unblocked_potrf(uplo, a);
  const int half = half_of(order), rest = order - half;
  const Matrix<T> first = a.block(0, 0, half, half), second = a.block(half, half, rest, rest);
  if (const int failed = potrf(uplo, first); failed > 0) return failed;
  if (uplo == Uplo::lower) {
    const Matrix<T> coupling = a.block(half, 0, rest, half);
    trsm(Side::right, uplo, Trans::yes, Diag::non_unit, T{1}, first, coupling);
    syrk(uplo, Trans::no, T{-1}, coupling, T{1}, second);
  } else {
    const Matrix<T> coupling = a.block(0, half, half, rest);
    trsm(Side::left, uplo, Trans::yes, Diag::non_unit, T{1}, first, coupling);
    syrk(uplo, Trans::yes, T{-1}, coupling, T{1}, second);
  }
  const int failed = potrf(uplo, second);
  return failed > 0 ? half + failed : 0;
}

template <class T>
int TileBlas<T>::getrf(Matrix<T> a, std::int32_t* pivots) const {
  const int order = std::min(a.rows, a.columns);
  if (blas_.getrf != nullptr && !(packs_ && order >= kLeastOrder)) {
    int info = 0;
    blas_.getrf(&a.rows, &a.columns, a.data, &a.stride, pivots, &info);
    return info;
  }
  if (order <= kUnblockedOrder) return unblocked_getrf(a, pivots);
  const int half = half_of(order), rest = a.columns - half, below = a.rows - half;
  const Matrix<T> left = a.block(0, 0, a.rows, half), right = a.block(0, half, a.rows, rest);
  const Matrix<T> top = right.block(0, 0, half, rest), bottom = right.block(half, 0, below, rest);
  const int first_zero = getrf(left, pivots);
  exchange_rows(right, pivots, half);
  trsm(Side::left, Uplo::lower, Trans::no, Diag::unit, T{1}, left.block(0, 0, half, half), top);
  gemm(Trans::no, Trans::no, T{-1}, left.block(half, 0, below, half), top, T{1}, bottom);
  const int later_zero = getrf(bottom, pivots + half);
  exchange_rows(left.block(half, 0, below, half), pivots + half, order - half);
  for (int i = half; i < order; ++i) pivots[i] += half;
  return first_zero > 0 ? first_zero : later_zero > 0 ? half + later_zero : 0;
}

template class TileBlas<float>;
template class TileBlas<double>;

}  // namespace weir::kernels
