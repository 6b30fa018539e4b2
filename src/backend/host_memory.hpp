// Zero-filled memory of this process for instances that are made of host memory.
#pragma once

#include "backend/backend.hpp"

namespace weir::rt {

/// Allocates page-aligned zero-filled memory whose pages nobody has touched yet. Throws
/// Error{out_of_memory} naming `owner`.
Memory allocate_host_memory(std::size_t bytes, const std::string& owner);
void release_host_memory(Memory& memory) noexcept;

}  // namespace weir::rt
