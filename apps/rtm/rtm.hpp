// Reverse-time migration: an image of the ground from recorded waves.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Makes an image of the interface of two layers from the waves that one shot sends up from it.
std::unique_ptr<Application> make_rtm();

}  // namespace weir::apps
