// Pictures of a cube, several of them in flight at once.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Draws pictures with a pipeline in which each picture is an epoch.
std::unique_ptr<Application> make_raster();

}  // namespace weir::apps
