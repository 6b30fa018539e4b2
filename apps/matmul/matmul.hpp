// Tiled matrix product.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Multiplies two matrices, C = A B.
std::unique_ptr<Application> make_matmul();

}  // namespace weir::apps
