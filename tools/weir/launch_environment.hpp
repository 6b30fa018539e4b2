// What the environment says about how this process was started: which rank it is of how many.
#pragma once

#include <string>

namespace weir::cli {

/// Whether this process is a rank that `--ranks` has started.
bool is_rank();
/// How many ranks were started together, 1 for one that is alone.
unsigned started_ranks();
/// The number of this one, 0 when it is alone.
unsigned started_rank();
/// Whether no rank of a lower number is on this machine: what is wrong with a command is wrong for
/// all that were started with it, and one says it.
bool speaks_for_machine();
/// "rank 1: ", to begin what this rank says with; "" when it is alone.
std::string rank_prefix();

/// Whether a stream of this process is a terminal that a person looks at. A process that mpirun has
/// started has none: mpirun reads what it writes, with Open MPI behind a terminal of its own, and
/// writes that to wherever its own output goes.
bool is_terminal(int descriptor);

}  // namespace weir::cli
