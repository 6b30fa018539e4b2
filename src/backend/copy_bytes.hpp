// Copies regions on the cores of the host.
#pragma once

#include <cstddef>

#include "base/region.hpp"

namespace weir::rt {

/// Returns the same bytes with as few rows as possible.
Region joined(Region region) noexcept;

/// Copies the bytes of one region, in order, to another of the same size. They must not overlap.
void copy_bytes(std::byte* target, const Region& target_region, const std::byte* source,
                const Region& source_region) noexcept;

}  // namespace weir::rt
