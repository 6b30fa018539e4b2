// Moving the bytes of a region on the host's cores.
#pragma once

#include <cstddef>

#include "base/region.hpp"

namespace weir::rt {

/// Copies the bytes of one region to another that has as many, in order. They do not overlap.
void copy_bytes(std::byte* target, const Region& target_region, const std::byte* source,
                const Region& source_region) noexcept;

}  // namespace weir::rt
