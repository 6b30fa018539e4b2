// Running this very command on several ranks.
#pragma once

#include "command.hpp"

namespace weir::cli {

/// Whether this process is a rank that `--ranks` has started.
bool is_rank();

/// Starts the command of this process on `ranks` ranks of this machine and waits for them. Returns
/// what the lowest rank that failed has returned.
ExitCode run_on_ranks(unsigned ranks);

}  // namespace weir::cli
