// Built-in kernels for OpenCL devices: weir's own OpenCL kernels, enqueued in the queue of the
// action.
#pragma once

#include <string_view>

#include "kernels/builtin_kernel.hpp"

namespace weir::kernels {

/// Returns the code for domains of the kind "opencl" of a built-in kernel, null when it has none.
/// Its payload is the kernel, a const BuiltinKernel*.
///
/// Without a queue, on a processor, the code is the host code. With a queue it checks its arguments
/// like the host code, enqueues, and never waits. A factorisation of a matrix that is not positive
/// definite leaves its tile half factored; the next blas.* or lapack.* call that the place starts
/// after the result has arrived fails with KERNEL_ERROR and the name of the factorisation.
weir_host_function opencl_code(std::string_view kernel) noexcept;

}  // namespace weir::kernels
