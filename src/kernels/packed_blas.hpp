// Triangular routines for one tile, built from products of small packed blocks.
//
// For a library that excels_at_small_products(). The operands are copied to contiguous blocks in
// the cache and the small triangles on the diagonal are inverted, so that nearly all the work is
// products. Where such a triangle is too ill-conditioned to be inverted it is solved by
// substitution: the results are as accurate as those of LAPACK.
#pragma once

#include "kernels/blas_library.hpp"
#include "kernels/matrix.hpp"

namespace weir::kernels {

/// The largest order of a triangle that fits the workspace of a thread.
inline constexpr int kPackedOrder = 256;

/// Solves op(A) X = alpha B or X op(A) = alpha B for X, which replaces B. A is of order
/// kPackedOrder at most.
template <class T>
void packed_trsm(const Blas<T>& blas, Side side, Uplo uplo, Trans trans, Diag diag, Scalar<T> alpha,
                 Input<T> a, Matrix<T> b);

/// C = alpha A A^T + beta C in one triangle of C, of order kPackedOrder at most.
template <class T>
void packed_syrk(const Blas<T>& blas, Uplo uplo, Scalar<T> alpha, Input<T> a, Scalar<T> beta,
                 Matrix<T> c);

/// Factors A = L L^T or U^T U in one triangle, of order kPackedOrder at most. Returns 0, or the
/// order of the leading minor that is not positive definite.
template <class T>
int packed_potrf(const Blas<T>& blas, Uplo uplo, Matrix<T> a);

}  // namespace weir::kernels
