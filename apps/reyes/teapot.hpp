// Newell's teapot.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace weir::apps {

using Point = std::array<float, 3>;

/// A bicubic Bezier patch, as the stages of Reyes see it.
struct Patch {
  std::array<Point, 16> points;  ///< four rows
  std::uint32_t splits = 0;      ///< that made it
};

/// The 32 patches of the teapot with the ring under its lid: Newell's control points in fortieths
/// of his unit, scaled so that the largest is 1, upright at (0, -0.5, 1).
std::vector<Patch> teapot();

}  // namespace weir::apps
