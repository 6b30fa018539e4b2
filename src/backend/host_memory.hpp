// Zero-filled memory of this process, for instances in host memory.
#pragma once

#include "backend/backend.hpp"

namespace weir::rt {

/// Allocates page-aligned zero-filled memory. No thread has touched its pages, so the first access
/// places them. Throws Error{out_of_memory} naming `owner`.
Memory allocate_host_memory(std::size_t bytes, const std::string& owner);
void release_host_memory(Memory& memory) noexcept;

}  // namespace weir::rt
