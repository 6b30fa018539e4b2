// Acoustic waves on a three-dimensional grid.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Lets a wavelet spread in two layers: eighth order in space, second in time.
std::unique_ptr<Application> make_wave();

}  // namespace weir::apps
