// Texts of portable kernels as compilers of devices get them.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// The text of <weir/portable.h>.
const char* portable_dialect() noexcept;

/// The text of <weir/device_tunnel.hpp>, for compilers of CUDA.
const char* device_tunnel_text() noexcept;

/// Returns a source with the dialect before it. Compilers then count its lines from 1 and name its
/// file.
std::string portable_text(const KernelSource& source);

}  // namespace weir::rt
