// The arguments of the tile kernels, checked: the same for every kind of code.
#pragma once

#include <algorithm>
#include <cstdint>

#include <weir/kernel.h>

#include "base/error.hpp"
#include "kernels/blas_library.hpp"
#include "kernels/call_arguments.hpp"
#include "kernels/matrix.hpp"

namespace weir::kernels {

/// For real matrices the conjugate transpose is the transpose.
inline Trans trans_of(char letter) { return letter == 'N' ? Trans::no : Trans::yes; }
inline Uplo uplo_of(char letter) { return letter == 'L' ? Uplo::lower : Uplo::upper; }

/// Of op(A).
template <class T>
struct Shape {
  int rows, columns;
  Shape(Matrix<T> matrix, Trans trans = Trans::no)
      : rows(trans == Trans::no ? matrix.rows : matrix.columns),
        columns(trans == Trans::no ? matrix.columns : matrix.rows) {}
};

/// Throws rt::Error{invalid_argument} that names the matrix.
template <class T>
void check_square(const char* name, Matrix<T> matrix) {
  if (matrix.rows == matrix.columns) return;
  rt::fail_argument("{} is {} x {}: expected a square", name, matrix.rows, matrix.columns);
}

/// C = alpha op(A) op(B) + beta C. The constructors of this and the others throw
/// rt::Error{invalid_argument}; run() takes anything with the routines of TeamBlas.
template <class T>
struct Gemm {
  explicit Gemm(const weir_call& call) : arguments(call, "transa, transb, alpha, beta", "A, B, C") {
    const Shape<T> left(a, trans_a), right(b, trans_b);
    if (left.rows == c.rows && left.columns == right.rows && right.columns == c.columns) return;
    rt::fail_argument("op(A) is {} x {}, op(B) {} x {} and C {} x {}: they do not fit", left.rows,
                      left.columns, right.rows, right.columns, c.rows, c.columns);
  }

  CallArguments arguments;
  Trans trans_a = trans_of(arguments.letter(0, "NTC")),
        trans_b = trans_of(arguments.letter(1, "NTC"));
  T alpha = static_cast<T>(arguments.real(2)), beta = static_cast<T>(arguments.real(3));
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_READ);
  Matrix<T> b = arguments.template matrix<T>(1, WEIR_ACCESS_READ);
  Matrix<T> c = arguments.template matrix<T>(2, WEIR_ACCESS_WRITE);

  template <class Routines>
  void run(const Routines& blas) const {
    blas.gemm(trans_a, trans_b, alpha, a, b, beta, c);
  }

  weir_cost cost() const {
    const double m = c.rows, n = c.columns, k = Shape<T>(a, trans_a).columns;
    return {2 * m * n * k, sizeof(T) * (m * k + k * n + 2 * m * n)};
  }
};

/// C = alpha op(A) op(A)^T + beta C in one triangle of C.
template <class T>
struct Syrk {
  explicit Syrk(const weir_call& call) : arguments(call, "uplo, trans, alpha, beta", "A, C") {
    check_square("operand 2 (C)", c);
    const Shape<T> factor(a, trans);
    if (factor.rows == c.rows) return;
    rt::fail_argument("op(A) is {} x {} and C {} x {}: they do not fit", factor.rows,
                      factor.columns, c.rows, c.columns);
  }

  CallArguments arguments;
  Uplo uplo = uplo_of(arguments.letter(0, "LU"));
  Trans trans = trans_of(arguments.letter(1, "NTC"));
  T alpha = static_cast<T>(arguments.real(2)), beta = static_cast<T>(arguments.real(3));
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_READ);
  Matrix<T> c = arguments.template matrix<T>(1, WEIR_ACCESS_WRITE);

  template <class Routines>
  void run(const Routines& blas) const {
    blas.syrk(uplo, trans, alpha, a, beta, c);
  }

  weir_cost cost() const {
    const double n = c.rows, k = Shape<T>(a, trans).columns;
    return {n * (n + 1) * k, sizeof(T) * (n * k + n * n)};
  }
};

/// Solves op(A) X = alpha B or X op(A) = alpha B for X, which replaces B.
template <class T>
struct Trsm {
  explicit Trsm(const weir_call& call)
      : arguments(call, "side, uplo, transa, diag, alpha", "A, B") {
    check_square("operand 1 (A)", a);
    if (a.rows == (side == Side::left ? b.rows : b.columns)) return;
    rt::fail_argument("A is of order {} and B {} x {}: they do not fit from the {}", a.rows, b.rows,
                      b.columns, side == Side::left ? "left" : "right");
  }

  CallArguments arguments;
  Side side = arguments.letter(0, "LR") == 'L' ? Side::left : Side::right;
  Uplo uplo = uplo_of(arguments.letter(1, "LU"));
  Trans trans = trans_of(arguments.letter(2, "NTC"));
  Diag diag = arguments.letter(3, "NU") == 'N' ? Diag::non_unit : Diag::unit;
  T alpha = static_cast<T>(arguments.real(4));
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_READ);
  Matrix<T> b = arguments.template matrix<T>(1, WEIR_ACCESS_WRITE);

  template <class Routines>
  void run(const Routines& blas) const {
    blas.trsm(side, uplo, trans, diag, alpha, a, b);
  }

  weir_cost cost() const {
    const double m = b.rows, n = b.columns, order = a.rows;
    return {m * n * order, sizeof(T) * (order * order / 2 + 2 * m * n)};
  }
};

/// A = L L^T or U^T U in one triangle of a tile before which there are `first` rows.
template <class T>
struct Potrf {
  explicit Potrf(const weir_call& call) : arguments(call, "uplo, first", "A") {
    check_square("operand 1 (A)", a);
    if (first < 0)
      rt::fail_argument("scalar 2 (first) is {}: expected the rows before the tile", first);
  }

  CallArguments arguments;
  Uplo uplo = uplo_of(arguments.letter(0, "LU"));
  std::int64_t first = arguments.integer(1);
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_WRITE);

  weir_cost cost() const {
    const double n = a.rows;
    return {n * n * n / 3, sizeof(T) * n * n};
  }
};

/// P A = L U.
template <class T>
struct Getrf {
  explicit Getrf(const weir_call& call) : arguments(call, "", "A, pivots") {
    const int order = std::min(a.rows, a.columns);
    if (pivots.rows == order && pivots.columns == 1) return;
    rt::fail_argument("operand 2 (pivots) is {} x {} int32: expected {} in one column", pivots.rows,
                      pivots.columns, order);
  }

  CallArguments arguments;
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_WRITE);
  Matrix<std::int32_t> pivots = arguments.template matrix<std::int32_t>(1, WEIR_ACCESS_WRITE);

  weir_cost cost() const {
    const double longer = std::max(a.rows, a.columns), order = std::min(a.rows, a.columns);
    return {order * order * (longer - order / 3), sizeof(T) * 2.0 * a.rows * a.columns};
  }
};

}  // namespace weir::kernels
