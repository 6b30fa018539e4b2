// Pictures by patches that are split until they are small, after Reyes.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Draws Newell's teapot with a pipeline whose first stage makes work for itself.
std::unique_ptr<Application> make_reyes();

}  // namespace weir::apps
