// The part of the walk that has ranks: two of one process, which do all that ranks can do.
#pragma once

#include "walk.hpp"

namespace faults {

/// Allocates nothing itself. `folder` is not used.
void walk_fabric(const Route& route, const char* folder, Report& report);

}  // namespace faults
