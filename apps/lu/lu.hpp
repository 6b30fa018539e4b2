// Tiled LU factorisation with partial pivoting.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Factors a square matrix, P A = L U with partial pivoting, and can solve A x = b with it.
std::unique_ptr<Application> make_lu();

}  // namespace weir::apps
