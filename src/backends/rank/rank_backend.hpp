// Domains in the processes of other ranks.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Returns a backend that opens "rank:N/SPECIFICATION" through a port, which must outlive it; null:
/// the program has no fabric. On ranks other than 0 such domains are empty.
std::unique_ptr<Backend> make_rank_backend(Port* port);

}  // namespace weir::rt
