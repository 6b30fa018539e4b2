// The acoustic wave equation solved plainly, to compare with.
#pragma once

#include <cstddef>
#include <vector>

#include "wave/acoustics.hpp"

namespace weir::apps {

/// Where a wavelet enters the grid.
struct Source {
  std::size_t x, y, z;
  Ricker wavelet;
};

/// Returns the n x n x n cells, x fastest, after some steps in double, on the calling thread.
std::vector<double> reference_wave(std::size_t n, const Layers& layers, const Source& source,
                                   std::size_t steps);

}  // namespace weir::apps
