// Starts ranks as processes of this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/link.hpp"

namespace weir::rt {

/// Starts a program `ranks` times and waits until all processes have ended. Returns the exit status
/// of the lowest rank that failed, 128 plus the signal's number if a signal ended it; 0 if none
/// failed. Kills stopped ranks when all remaining ranks have been stopped for `lost_after_ns`.
/// Throws Error.
int launch_ranks(Rank ranks, const char* const* arguments, std::int64_t lost_after_ns);

/// Returns whether launch_ranks() started this process.
bool was_launched() noexcept;
/// Returns this process's rank as text; null if launch_ranks() did not start it.
const char* launched_rank() noexcept;
/// Returns the link of a process that launch_ranks() started. Throws Error.
std::unique_ptr<Link> launched_link();

}  // namespace weir::rt
