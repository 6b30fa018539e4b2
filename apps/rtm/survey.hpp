// The position of a shot and its receivers, and the expected image.
#pragma once

#include <cmath>
#include <cstddef>

#include "common/matrix.hpp"
#include "wave/acoustics.hpp"

namespace weir::apps {

/// A shot above two layers of n cells an edge. Receivers are in all cells of the plane of the shot.
struct Survey {
  static constexpr std::size_t kSmallestEdge = 32;

  explicit Survey(std::size_t edge)
      : n(edge), ground{.interface = 2 * edge / 3}, shot_depth(sponge_width(edge) + 2) {}

  std::size_t n;
  Layers ground;
  std::size_t shot_depth;
  Ricker wavelet;

  /// Returns the background medium: the upper layer, everywhere.
  Layers background() const { return {.interface = n}; }
  /// Enough for the wavelet to reach the interface and to come back.
  std::size_t usual_steps() const {
    const double way = 2.0 * static_cast<double>(ground.interface - shot_depth);
    return static_cast<std::size_t>(way / ground.above + 2.5 * wavelet.delay);
  }

  /// Depth of the interface: between two planes.
  double depth() const { return static_cast<double>(ground.interface) - 0.5; }

  /// Returns the first plane of the evaluated image: nearer to the shot its own wave dominates.
  std::size_t first_plane() const {
    const double wavelength = ground.above / wavelet.frequency;
    return shot_depth + static_cast<std::size_t>(wavelength);
  }

  /// Returns the plane with the strongest mean of the cells below the shot. The image has a column
  /// for each line of cells.
  template <class T>
  std::size_t strongest_plane(const Matrix<T>& image) const {
    const std::size_t begin = n / 2 - n / 8, end = n / 2 + n / 8;
    std::size_t strongest = first_plane();
    double most = 0;
    for (std::size_t z = first_plane(); z < n - sponge_width(n); ++z) {
      double sum = 0;
      for (std::size_t y = begin; y < end; ++y) {
        for (std::size_t x = begin; x < end; ++x) sum += static_cast<double>(image(x, y + n * z));
      }
      if (!(std::abs(sum) > most)) continue;
      most = std::abs(sum);
      strongest = z;
    }
    return strongest;
  }
};

}  // namespace weir::apps
