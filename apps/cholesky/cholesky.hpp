// Tiled Cholesky factorisation, the main job of paper 001.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Factors a symmetric positive definite matrix, A = L L^T, and can solve A x = b with it.
std::unique_ptr<Application> make_cholesky();

}  // namespace weir::apps
