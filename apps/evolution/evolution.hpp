// Two islands of creatures that evolve.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Evolves creatures with a pipeline in which each generation of an island is an epoch.
std::unique_ptr<Application> make_evolution();

}  // namespace weir::apps
