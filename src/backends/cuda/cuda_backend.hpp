// CUDA devices as domains.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace weir::rt {

/// In a build without CUDA's headers its open() throws Error{unavailable}.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace weir::rt
