// Which of the processes on one machine this is, when they were started together.
#pragma once

#include <cstddef>

namespace weir::rt {

struct LocalRank {
  std::size_t rank = 0, ranks = 1;  ///< rank < ranks
};

/// What the environment says that weir run --ranks, mpirun or srun has set; {0, 1} without any.
LocalRank local_rank() noexcept;

}  // namespace weir::rt
