// Built-in kernels for CUDA: calls of cuBLAS, cuSOLVER and the driver in the stream of the action.
#pragma once

#include <string_view>

#include <weir/kernel.h>

namespace weir::kernels {

/// Returns the code for domains of the kind "cuda" of a built-in kernel, null when it has none.
///
/// It checks its arguments as that for the host does, enqueues, and never waits. Each stream of a
/// place has a handle and a workspace of its own, made by the first call in it and freed when the
/// thread of the place ends.
///
/// A factorisation is over before anybody knows whether the matrix was positive definite. When it
/// was not, the tile is left as cuSOLVER leaves it, and the next blas.* or lapack.* call that the
/// place starts after that is known fails with KERNEL_ERROR and the name of the factorisation; what
/// no call comes after is logged as a warning when the place ends.
weir_host_function cuda_code(std::string_view kernel) noexcept;

}  // namespace weir::kernels
