// Which of the processes that were started together this is, on one machine and on all.
#pragma once

#include <cstddef>
#include <string>

namespace weir::rt {

struct LocalRank {
  std::size_t rank = 0, ranks = 1;  ///< rank < ranks
  bool started_by_weir = false;     ///< all of them may use the same cores
};

/// What the environment says that weir run --ranks, mpirun or srun has set; {0, 1} without any.
LocalRank local_rank() noexcept;

/// Returns "rank 1: " to begin a message of this process with, as the environment says, "" when it
/// was started alone.
std::string rank_prefix();

}  // namespace weir::rt
