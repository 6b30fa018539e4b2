// Kernels that fill and copy memory.
#pragma once

#include <span>

#include "kernels/builtin_kernel.hpp"

namespace weir::kernels {

/// mem.set and mem.copy.
std::span<const BuiltinKernel> memory_kernels();

}  // namespace weir::kernels
