// The operations of the stages of Reyes on an item: split, dice, shade. All in float, and the same
// bits everywhere: the file is compiled without fused products.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/depth_frame.hpp"
#include "reyes/teapot.hpp"

namespace weir::apps {

/// A camera at (0, 0, 3) that looks at the origin; 60 degrees from bottom to top.
struct ReyesCamera {
  ReyesCamera(std::size_t width, std::size_t height);

  /// Pixels, and the depth from -1, near, to 1, far.
  Point project(const Point& point) const noexcept;

  float width, height;
  float scale_x, scale_y, scale_z, shift_z;
};

/// The lengths of a patch on the screen in pixels: the longest control polygon either way.
struct PatchSize {
  float u, v;
  bool fits() const noexcept { return u < kMost && v < kMost; }
  static constexpr float kMost = 4;
};
PatchSize size_of(const Patch& patch, const ReyesCamera& camera) noexcept;

/// Whether a patch is to be diced, not split.
bool is_small(const Patch& patch, const PatchSize& size) noexcept;
/// Divides a patch in two where it is long.
std::array<Patch, 2> halves_of(const Patch& patch, const PatchSize& size) noexcept;

/// A patch that is small, and into how many micropolygons each way it is diced.
struct SmallPatch {
  std::array<Point, 16> points;
  static constexpr std::size_t kMostPerEdge = 32;
  static constexpr std::size_t kMostMicropolygons = (kMostPerEdge + 1) * (kMostPerEdge + 1);
  std::uint32_t along_u, along_v;
  /// Includes a row and a column beyond the patch, so that there are no gaps.
  std::size_t micropolygons() const noexcept { return (along_u + 1) * (along_v + 1); }
};
SmallPatch small_patch(const Patch& patch, const PatchSize& size) noexcept;

struct Micropolygon {
  std::array<Point, 4> corners;  ///< on the screen
  std::array<Point, 4> normals;  ///< of length 1, or 0 where the surface has none
};
/// One micropolygon of a patch, by its row and column.
Micropolygon micropolygon(const SmallPatch& patch, const ReyesCamera& camera, std::size_t row,
                          std::size_t column) noexcept;

/// Draws the pixels whose centres are inside.
void shade(const Micropolygon& polygon, DepthFrame& frame) noexcept;

}  // namespace weir::apps
