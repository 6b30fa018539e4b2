// The temperature of a chip.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Explicit steps of the heat equation on a chip, with the constants of Rodinia's hotspot.
std::unique_ptr<Application> make_hotspot();

}  // namespace weir::apps
