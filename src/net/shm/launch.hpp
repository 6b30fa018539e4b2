// Starting ranks as processes of this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/link.hpp"

namespace weir::rt {

/// Starts a program `ranks` times and waits until all have ended. Returns the exit status of the
/// lowest rank that has failed, 128 and its number for one that a signal ended, else 0. Ranks that
/// are stopped when no other is left, and stay it, are killed. Throws Error.
int launch_ranks(Rank ranks, const char* const* arguments, std::int64_t lost_after_ns);

/// Whether this process was started by launch_ranks().
bool was_launched() noexcept;
/// The rank that it was started as, as text; null: it was not.
const char* launched_rank() noexcept;
/// The link of a process that was. Throws Error.
std::unique_ptr<Link> launched_link();

}  // namespace weir::rt
