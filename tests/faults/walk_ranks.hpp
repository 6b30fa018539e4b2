// The part of the walk that has domains of another rank: two ranks of one process, one of which
// serves.
#pragma once

#include "walk.hpp"

namespace faults {

extern const Route kRankRoute;

/// Allocates nothing itself. `folder` is not used.
void walk_ranks(const Route& route, const char* folder, Report& report);

}  // namespace faults
