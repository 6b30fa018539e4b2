// Source texts of portable kernels for device compilers.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// Returns the text of <weir/portable.h>.
const char* portable_dialect() noexcept;

/// Returns the text of <weir/device_tunnel.hpp>, for CUDA compilers.
const char* device_tunnel_text() noexcept;

/// Returns a source preceded by the dialect. Compilers then count the lines of the source from 1
/// and name its file.
std::string portable_text(const KernelSource& source);

}  // namespace weir::rt
