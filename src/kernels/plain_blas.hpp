// A BLAS in plain loops, for machines without one.
#pragma once

#include "kernels/blas_functions.hpp"

namespace weir::kernels {

/// Returns gemm, syrk and trsm of weir itself, for column-major matrices. Without LAPACK: the
/// kernels that need it factor in plain loops, too. Several times slower than a BLAS for the
/// processor.
template <class T>
Blas<T> plain_blas() noexcept;

}  // namespace weir::kernels
