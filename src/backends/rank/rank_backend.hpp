// Domains that are in the processes of other ranks.
#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// Opens "rank:N/SPECIFICATION", by a port that outlives it; null: the program is in no fabric. On
/// other ranks than 0 such domains are empty.
std::unique_ptr<Backend> make_rank_backend(Port* port);

}  // namespace weir::rt
