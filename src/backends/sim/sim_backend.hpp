// Simulated accelerators made of host cores.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace weir::rt {

std::unique_ptr<Backend> make_sim_backend();

}  // namespace weir::rt
