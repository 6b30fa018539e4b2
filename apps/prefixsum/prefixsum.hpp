// Prefix sums of a vector.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// y[i] = x[0] + ... + x[i]: sums of tiles, the sum before each, then the tiles.
std::unique_ptr<Application> make_prefixsum();

}  // namespace weir::apps
