#include "kernels/tile_kernels.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/blas_library.hpp"
#include "kernels/call_arguments.hpp"
#include "kernels/team_blas.hpp"

namespace weir::kernels {

namespace {

using rt::fail;
using rt::fail_argument;

// For real matrices the conjugate transpose is the transpose.
Trans trans_of(char letter) { return letter == 'N' ? Trans::no : Trans::yes; }
Uplo uplo_of(char letter) { return letter == 'L' ? Uplo::lower : Uplo::upper; }

template <class T>
struct Shape {
  int rows, columns;
  Shape(Matrix<T> matrix, Trans trans = Trans::no)
      : rows(trans == Trans::no ? matrix.rows : matrix.columns),
        columns(trans == Trans::no ? matrix.columns : matrix.rows) {}
};

template <class T>
void check_square(const char* name, Matrix<T> matrix) {
  if (matrix.rows == matrix.columns) return;
  fail_argument("{} is {} x {}: expected a square", name, matrix.rows, matrix.columns);
}

template <class T>
struct Gemm {
  explicit Gemm(const weir_call& call) : arguments(call, "transa, transb, alpha, beta", "A, B, C") {
    const Shape<T> left(a, trans_a), right(b, trans_b);
    if (left.rows == c.rows && left.columns == right.rows && right.columns == c.columns) return;
    fail_argument("op(A) is {} x {}, op(B) {} x {} and C {} x {}: they do not fit", left.rows,
                  left.columns, right.rows, right.columns, c.rows, c.columns);
  }

  CallArguments arguments;
  Trans trans_a = trans_of(arguments.letter(0, "NTC")),
        trans_b = trans_of(arguments.letter(1, "NTC"));
  T alpha = static_cast<T>(arguments.real(2)), beta = static_cast<T>(arguments.real(3));
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_READ);
  Matrix<T> b = arguments.template matrix<T>(1, WEIR_ACCESS_READ);
  Matrix<T> c = arguments.template matrix<T>(2, WEIR_ACCESS_WRITE);

  void run(const TeamBlas<T>& blas) const { blas.gemm(trans_a, trans_b, alpha, a, b, beta, c); }

  weir_cost cost() const {
    const double m = c.rows, n = c.columns, k = Shape<T>(a, trans_a).columns;
    return {2 * m * n * k, sizeof(T) * (m * k + k * n + 2 * m * n)};
  }
};

template <class T>
struct Syrk {
  explicit Syrk(const weir_call& call) : arguments(call, "uplo, trans, alpha, beta", "A, C") {
    check_square("operand 2 (C)", c);
    const Shape<T> factor(a, trans);
    if (factor.rows == c.rows) return;
    fail_argument("op(A) is {} x {} and C {} x {}: they do not fit", factor.rows, factor.columns,
                  c.rows, c.columns);
  }

  CallArguments arguments;
  Uplo uplo = uplo_of(arguments.letter(0, "LU"));
  Trans trans = trans_of(arguments.letter(1, "NTC"));
  T alpha = static_cast<T>(arguments.real(2)), beta = static_cast<T>(arguments.real(3));
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_READ);
  Matrix<T> c = arguments.template matrix<T>(1, WEIR_ACCESS_WRITE);

  void run(const TeamBlas<T>& blas) const { blas.syrk(uplo, trans, alpha, a, beta, c); }

  weir_cost cost() const {
    const double n = c.rows, k = Shape<T>(a, trans).columns;
    return {n * (n + 1) * k, sizeof(T) * (n * k + n * n)};
  }
};

template <class T>
struct Trsm {
  explicit Trsm(const weir_call& call)
      : arguments(call, "side, uplo, transa, diag, alpha", "A, B") {
    check_square("operand 1 (A)", a);
    if (a.rows == (side == Side::left ? b.rows : b.columns)) return;
    fail_argument("A is of order {} and B {} x {}: they do not fit from the {}", a.rows, b.rows,
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

  void run(const TeamBlas<T>& blas) const { blas.trsm(side, uplo, trans, diag, alpha, a, b); }

  weir_cost cost() const {
    const double m = b.rows, n = b.columns, order = a.rows;
    return {m * n * order, sizeof(T) * (order * order / 2 + 2 * m * n)};
  }
};

template <class T>
struct Potrf {
  explicit Potrf(const weir_call& call) : arguments(call, "uplo, first", "A") {
    check_square("operand 1 (A)", a);
    if (first < 0)
      fail_argument("scalar 2 (first) is {}: expected the rows before the tile", first);
  }

  CallArguments arguments;
  Uplo uplo = uplo_of(arguments.letter(0, "LU"));
  std::int64_t first = arguments.integer(1);
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_WRITE);

  void run(const TeamBlas<T>& blas) const {
    int failed = blas.potrf(uplo, a);
    for (int i = 0; failed == 0 && i < a.rows; ++i) {
      if (!(a(i, i) > 0)) failed = i + 1;  // libraries let nan through
    }
    if (failed == 0) return;
    fail(WEIR_STATUS_KERNEL_ERROR, "the leading minor of order {} is not positive definite",
         first + failed);
  }

  weir_cost cost() const {
    const double n = a.rows;
    return {n * n * n / 3, sizeof(T) * n * n};
  }
};

template <class T>
struct Getrf {
  explicit Getrf(const weir_call& call) : arguments(call, "", "A, pivots") {
    const int order = std::min(a.rows, a.columns);
    if (pivots.rows == order && pivots.columns == 1) return;
    fail_argument("operand 2 (pivots) is {} x {} int32: expected {} in one column", pivots.rows,
                  pivots.columns, order);
  }

  CallArguments arguments;
  Matrix<T> a = arguments.template matrix<T>(0, WEIR_ACCESS_WRITE);
  Matrix<std::int32_t> pivots = arguments.template matrix<std::int32_t>(1, WEIR_ACCESS_WRITE);

  void run(const TeamBlas<T>& blas) const {
    const int zero = blas.getrf(a, pivots.data);
    if (zero > 0) {
      fail(WEIR_STATUS_KERNEL_ERROR, "the matrix is singular: pivot {} of its factor U is zero",
           zero);
    }
  }

  weir_cost cost() const {
    const double longer = std::max(a.rows, a.columns), order = std::min(a.rows, a.columns);
    return {order * order * (longer - order / 3), sizeof(T) * 2.0 * a.rows * a.columns};
  }
};

template <class T, template <class> class Routine>
void call_routine(const weir_call& call) {
  const BlasLibrary& library = BlasLibrary::instance();
  const OneThread one_thread(library);
  Routine<T>(call).run(TeamBlas<T>(library, call.team));
}

template <class T, template <class> class Routine>
weir_cost routine_cost(const weir_call& call) {
  return Routine<T>(call).cost();
}

template <class T, template <class> class Routine>
constexpr BuiltinKernel kernel(const char* name) {
  return {name, run_kernel<call_routine<T, Routine>>, cost_of<routine_cost<T, Routine>>};
}

constexpr BuiltinKernel kKernels[] = {
    kernel<float, Gemm>("blas.sgemm"),     kernel<double, Gemm>("blas.dgemm"),
    kernel<float, Syrk>("blas.ssyrk"),     kernel<double, Syrk>("blas.dsyrk"),
    kernel<float, Trsm>("blas.strsm"),     kernel<double, Trsm>("blas.dtrsm"),
    kernel<float, Potrf>("lapack.spotrf"), kernel<double, Potrf>("lapack.dpotrf"),
    kernel<float, Getrf>("lapack.sgetrf"), kernel<double, Getrf>("lapack.dgetrf"),
};

}  // namespace

std::span<const BuiltinKernel> tile_kernels() { return kKernels; }

}  // namespace weir::kernels
