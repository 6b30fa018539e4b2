// The operations of the stages of Reyes on an item: split, dice, shade. All in float, and the same
// bits everywhere: the file is compiled without fused products.
#pragma once

#include <algorithm>
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

/// A patch that is small, and into how many micropolygons each way it is diced, with a row and a
/// column beyond the patch, so that there are no gaps.
struct SmallPatch {
  std::array<Point, 16> points;
  static constexpr std::uint32_t kMostPerEdge = 32, kMostPerPartEdge = 3;
  static constexpr std::size_t kMostMicropolygons = (kMostPerEdge + 1) * (kMostPerEdge + 1);
  static constexpr std::size_t kMostOfPart = std::size_t{kMostPerPartEdge} * kMostPerPartEdge;
  std::uint32_t along_u, along_v;
  /// 0: all micropolygons. Otherwise a part of them: the first column, the columns, the first row
  /// and the rows, of 8 bits each from the lowest.
  std::uint32_t part;

  std::uint32_t columns() const noexcept { return part == 0 ? along_u + 1 : part >> 8 & 255; }
  std::uint32_t rows() const noexcept { return part == 0 ? along_v + 1 : part >> 24; }
  std::uint32_t first_column() const noexcept { return part & 255; }
  std::uint32_t first_row() const noexcept { return part >> 16 & 255; }
  std::size_t micropolygons() const noexcept { return std::size_t{columns()} * rows(); }
};
SmallPatch small_patch(const Patch& patch, const PatchSize& size) noexcept;
/// Calls visit(part) for parts of at most kMostOfPart micropolygons.
template <class Visit>
void each_part(SmallPatch whole, const Visit& visit) {
  constexpr std::uint32_t kEdge = SmallPatch::kMostPerPartEdge;
  const std::uint32_t columns = whole.columns(), rows = whole.rows();
  for (std::uint32_t row = 0; row < rows; row += kEdge) {
    for (std::uint32_t column = 0; column < columns; column += kEdge) {
      whole.part = column | std::min(kEdge, columns - column) << 8 | row << 16 |
                   std::min(kEdge, rows - row) << 24;
      visit(whole);
    }
  }
}

struct Micropolygon {
  std::array<std::array<float, 2>, 4> corners;  ///< on the screen
  float depth;
  std::uint32_t colour;  ///< red, green and blue, of 8 bits each from the lowest
};
/// One of the micropolygons of a patch or part.
Micropolygon micropolygon(const SmallPatch& patch, const ReyesCamera& camera,
                          std::size_t index) noexcept;

/// Draws the pixels whose centres are inside.
void shade(const Micropolygon& polygon, DepthFrame& frame) noexcept;

}  // namespace weir::apps
