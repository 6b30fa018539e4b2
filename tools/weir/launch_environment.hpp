// Reads from the environment how this process was started: its rank and the number of ranks.
#pragma once

#include <string>

namespace weir::cli {

/// Whether this process is a rank that `--ranks` has started.
bool is_rank();
/// Returns how many ranks were started together; 1 for a single process.
unsigned started_ranks();
/// Returns the number of this rank; 0 for a single process.
unsigned started_rank();
/// Whether no rank with a lower number runs on this machine. A mistake in a command is the same for
/// all ranks, and one of them reports it.
bool speaks_for_machine();
/// Returns the prefix of messages of this rank, "rank 1: "; "" for a single process.
std::string rank_prefix();

/// Whether a stream of this process is a terminal with a user. A process that mpirun has started
/// has none: mpirun reads its output, with Open MPI through a pseudo-terminal, and writes that to
/// its own output.
bool is_terminal(int descriptor);

}  // namespace weir::cli
