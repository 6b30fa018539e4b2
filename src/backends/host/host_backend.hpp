// The cores of this machine as a domain.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace weir::rt {

std::unique_ptr<Backend> make_host_backend();

}  // namespace weir::rt
