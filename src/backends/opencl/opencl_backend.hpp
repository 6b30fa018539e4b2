// OpenCL devices as domains.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace weir::rt {

std::unique_ptr<Backend> make_opencl_backend();

}  // namespace weir::rt
