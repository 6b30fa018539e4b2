// BLAS and LAPACK on one tile, on the calling thread.
#pragma once

#include <cstdint>

#include "kernels/blas_library.hpp"
#include "kernels/matrix.hpp"

namespace weir::kernels {

/// Runs the fastest version of each routine: the library's own, or one built from its products. No
/// matrix is empty; the caller has checked that the shapes fit.
template <class T>
class TileBlas {
 public:
  explicit TileBlas(const BlasLibrary& library)
      : blas_(library.functions<T>()), packs_(library.excels_at_small_products()) {}

  /// C = alpha op(A) op(B) + beta C.
  void gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
            Matrix<T> c) const;

  /// C = alpha op(A) op(A)^T + beta C in one triangle of C; the rest is unchanged.
  void syrk(Uplo uplo, Trans trans, T alpha, Matrix<const T> a, T beta, Matrix<T> c) const;

  /// Solves op(A) X = alpha B or X op(A) = alpha B for X, which replaces B.
  void trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<const T> a,
            Matrix<T> b) const;

  /// Factors A = L L^T or U^T U in one triangle. Returns 0, or the order of the leading minor that
  /// is not positive definite.
  int potrf(Uplo uplo, Matrix<T> a) const;

  /// Factors P A = L U. pivots[i] is the row, counted from 1, that was exchanged with row i.
  /// Returns 0, or the number of the first pivot that is zero.
  int getrf(Matrix<T> a, std::int32_t* pivots) const;

 private:
  const Blas<T>& blas_;
  bool packs_;
};

}  // namespace weir::kernels
