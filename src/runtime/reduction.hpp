// How reductions combine numbers.
#pragma once

#include <cstddef>

#include <weir/communicator.h>

#include "fabric/communicator.hpp"

namespace weir::rt {

/// Returns `count` values at an address as a reduction combines them. Throws Error.
Numbers numbers_at(void* values, std::size_t count, const weir_reduction& reduction);

}  // namespace weir::rt
