// The kernels over TeamBlas.
#pragma once

#include <span>

#include "kernels/builtin_kernel.hpp"

namespace weir::kernels {

/// blas.* and lapack.*, which need a BLAS.
std::span<const BuiltinKernel> tile_kernels();

}  // namespace weir::kernels
