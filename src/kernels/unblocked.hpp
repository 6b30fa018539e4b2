// Factorizations of small blocks in plain loops, for libraries without LAPACK.
#pragma once

#include <cstdint>

#include "kernels/blas_library.hpp"
#include "kernels/matrix.hpp"

namespace weir::kernels {

/// Factors A = L L^T or U^T U in one triangle. Returns 0, or the order of the leading minor that is
/// not positive definite.
template <class T>
int unblocked_potrf(Uplo uplo, Matrix<T> a);

/// Factors P A = L U. pivots[i] is the row, counted from 1, that was exchanged with row i. Returns
/// 0, or the number of the first pivot that is zero.
template <class T>
int unblocked_getrf(Matrix<T> a, std::int32_t* pivots);

/// Exchanges row i with row pivots[i] - 1, for i = 0 to count - 1.
template <class T>
void exchange_rows(Matrix<T> a, const std::int32_t* pivots, int count);

}  // namespace weir::kernels
