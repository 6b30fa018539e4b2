// Multifrontal Cholesky factorisation of a sparse matrix: a batch of dense partial factorisations
// of very different sizes.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Factors the Laplacian of a three-dimensional grid, eliminated by nested dissection, and solves
/// with it.
std::unique_ptr<Application> make_sparse_cholesky();

}  // namespace weir::apps
