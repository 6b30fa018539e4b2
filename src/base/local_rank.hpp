// The number of this process among those started together, on one machine and on all.
#pragma once

#include <cstddef>
#include <string>

namespace weir::rt {

struct LocalRank {
  std::size_t rank = 0, ranks = 1;  ///< rank < ranks
  bool started_by_weir = false;     ///< all of them may use the same cores
};

/// Reads the variables that weir run --ranks, mpirun or srun has set; {0, 1} without any.
LocalRank local_rank() noexcept;

/// Returns a prefix for messages of this process, "rank 1: ", from the environment; "" when it was
/// started alone.
std::string rank_prefix();

}  // namespace weir::rt
