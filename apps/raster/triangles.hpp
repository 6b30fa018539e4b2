// Triangles of a cube: from space to bins of the screen to pixels, after Piko.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/depth_frame.hpp"

namespace weir::apps {

using Vector = std::array<float, 3>;

/// A triangle whose corners are lit and in pixels, with depths from 0 to 1 and colours from 0 to 1.
struct LitTriangle {
  std::array<Vector, 3> corners, colours;
};

/// Looks at the origin from (4, 3, 3), turned around the vertical axis.
class RasterCamera {
 public:
  RasterCamera(std::size_t width, std::size_t height, double degrees);

  Vector eye() const noexcept { return eye_; }
  /// Pixels and depth.
  Vector project(const Vector& point) const noexcept;

 private:
  float width_, height_;
  Vector eye_;
  Vector right_, up_, away_;  ///< axes, right_ and up_ scaled to the screen
};

/// A cube with edges of 2 around the origin, lit from the eye.
constexpr std::size_t kCubeTriangles = 12;
LitTriangle cube_triangle(std::size_t index, const RasterCamera& camera) noexcept;

/// A triangle with corners in sixteenths of a pixel.
struct SnappedTriangle {
  std::array<std::int32_t, 3> x, y;
  std::array<float, 3> depth;
  std::array<Vector, 3> colours;
};
/// Edges of the squares of pixels that are drawn together.
constexpr std::int32_t kBin = 8;
/// A triangle and one of its bins, counted in bins from the corner of the screen.
struct BinTask {
  SnappedTriangle triangle;
  std::int32_t column, row;
};

/// A range of bins, its end excluded.
struct BinRange {
  std::int32_t first, end;
};

/// A triangle as the screen sees it.
class Setup {
 public:
  Setup(const LitTriangle& triangle, std::size_t width, std::size_t height) noexcept;

  const SnappedTriangle& triangle() const noexcept { return triangle_; }
  /// Whether it faces the eye, is not far outside of the screen, and may have a pixel's centre.
  bool visible() const noexcept { return visible_; }
  BinRange columns() const noexcept { return columns_; }
  BinRange rows() const noexcept { return rows_; }
  /// Whether no edge has all of a bin on its outer side.
  bool touches(std::int32_t column, std::int32_t row) const noexcept;

 private:
  SnappedTriangle triangle_;
  bool visible_;
  BinRange columns_, rows_;
};

/// Draws a pixel when its centre is inside of the triangle, edges included.
void draw_pixel(const SnappedTriangle& triangle, std::int32_t x, std::int32_t y,
                DepthFrame& frame) noexcept;
/// Draws the pixels of a bin.
void draw_bin(const BinTask& task, DepthFrame& frame) noexcept;

}  // namespace weir::apps
