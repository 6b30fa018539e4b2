// The Laplacian on a grid in two or three dimensions (paper 003).
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Iterates X = X + c Laplacian(X) with a constant border, on the blocks of a grid: over the places
/// of one process, or over ranks.
std::unique_ptr<Application> make_laplacian();

}  // namespace weir::apps
