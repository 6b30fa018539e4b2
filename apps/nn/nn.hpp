// Nearest neighbours.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Finds the records of latitude and longitude that are nearest to a target, as Rodinia's nn.
std::unique_ptr<Application> make_nn();

}  // namespace weir::apps
