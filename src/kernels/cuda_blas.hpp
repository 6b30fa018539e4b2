// Built-in kernels for CUDA: calls of cuBLAS, cuSOLVER and the driver in the stream of the action.
#pragma once

#include <string_view>

#include <weir/kernel.h>

namespace weir::kernels {

/// Returns the code for domains of the kind "cuda" of a built-in kernel, null when it has none.
///
/// The code checks its arguments like the host code, enqueues, and never waits. Each stream of a
/// place has its own handle and workspace, created by the first call in the stream and freed when
/// the thread of the place ends.
///
/// A factorisation completes before the host knows whether the matrix was positive definite. If it
/// was not, the tile has the contents that cuSOLVER leaves, and the next blas.* or lapack.* call
/// that the place starts after the result has arrived fails with KERNEL_ERROR and the name of the
/// factorisation. A failure that no call follows is logged as a warning when the place ends.
weir_host_function cuda_code(std::string_view kernel) noexcept;

}  // namespace weir::kernels
