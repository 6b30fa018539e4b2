// Whether the kernels of tiles run on a core or on all cores of their place.
#pragma once

#include <cstddef>

#include "common/app_streams.hpp"
#include "common/workload.hpp"

namespace weir::apps {

/// Returns the ending of the names of tile kernels: ".team" for all cores of the place, "" for one.
/// `ready` tiles can be computed at the same time. Automatic: on all cores where there are fewer
/// than two for each core, because the last tiles would then leave cores idle for long (paper 000:
/// the threads of a partition compute a tile together); fewer than four where places were made for
/// that.
inline const char* tile_kernel_ending(TileKernels wanted, std::size_t ready,
                                      const AppStreams& app_streams) {
  const std::size_t tiles_per_core = app_streams.teams() ? 4 : 2;
  const bool few = ready < tiles_per_core * app_streams.cores();
  const bool team = wanted == TileKernels::automatic ? few : wanted == TileKernels::team;
  return team ? ".team" : "";
}

}  // namespace weir::apps
