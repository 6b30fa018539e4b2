// The part of the walk that shares work out: task queues, shares and pipelines.
#pragma once

#include "walk.hpp"

namespace faults {

/// In a runtime of its own, which is gone afterwards. Allocates nothing itself. `folder` is not
/// used.
void walk_flows(const Route& route, const char* folder, Report& report);

}  // namespace faults
