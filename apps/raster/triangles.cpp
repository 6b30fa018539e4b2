#include "raster/triangles.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weir::apps {

namespace {

constexpr double kFieldOfView = 46.826447, kNear = 0.1, kFar = 1000;
constexpr std::int32_t kSteps = 16, kCentre = 8;  // of a pixel
constexpr std::int32_t kGuard = 225 * kSteps;     // how far outside a corner may be
constexpr std::int32_t kBox = 16 * kSteps;        // boxes grow to multiples of this
constexpr std::int32_t kBinSteps = kBin * kSteps;

constexpr std::array<Vector, 8> kCorners = {{{1, -1, -1},
                                             {1, -1, 1},
                                             {-1, -1, 1},
                                             {-1, -1, -1},
                                             {1, 1, -1},
                                             {1, 1, 1},
                                             {-1, 1, 1},
                                             {-1, 1, -1}}};
struct Face {
  std::array<std::uint8_t, 3> corners;
  Vector normal;
};
constexpr std::array<Face, kCubeTriangles> kFaces = {{{{4, 0, 3}, {0, 0, -1}},
                                                      {{4, 3, 7}, {0, 0, -1}},
                                                      {{2, 6, 7}, {-1, 0, 0}},
                                                      {{2, 7, 3}, {-1, 0, 0}},
                                                      {{1, 5, 2}, {0, 0, 1}},
                                                      {{5, 6, 2}, {0, 0, 1}},
                                                      {{0, 4, 1}, {1, 0, 0}},
                                                      {{4, 5, 1}, {1, 0, 0}},
                                                      {{4, 7, 5}, {0, 1, 0}},
                                                      {{7, 6, 5}, {0, 1, 0}},
                                                      {{0, 1, 2}, {0, -1, 0}},
                                                      {{0, 2, 3}, {0, -1, 0}}}};
constexpr Vector kMaterial = {0.9F, 0.9F, 0.6F}, kAmbient = {0.15F, 0.15F, 0.30F};

float dot(const Vector& a, const Vector& b) noexcept {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector difference(const Vector& a, const Vector& b) noexcept {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Vector scaled(const Vector& a, float by) noexcept { return {a[0] * by, a[1] * by, a[2] * by}; }
Vector unit(const Vector& a) noexcept { return scaled(a, 1 / std::sqrt(dot(a, a))); }
Vector cross(const Vector& a, const Vector& b) noexcept {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

Vector light(const Vector& corner, const Vector& normal, const Vector& eye) noexcept {
  const float facing = std::max(0.0F, dot(normal, unit(difference(eye, corner))));
  Vector colour;
  for (std::size_t i = 0; i < 3; ++i) {
    colour[i] = std::clamp(facing * kMaterial[i] + kAmbient[i], 0.0F, 1.0F);
  }
  return colour;
}

/// Twice the area on the left of the edge from a corner to the next; exact.
std::int64_t edge(const SnappedTriangle& t, std::size_t corner, std::int64_t x,
                  std::int64_t y) noexcept {
  const std::size_t next = (corner + 1) % 3;
  return (t.x[next] - t.x[corner]) * (y - t.y[corner]) -
         (t.y[next] - t.y[corner]) * (x - t.x[corner]);
}

std::int32_t snap(float pixels) noexcept {
  constexpr float kLimit = 1 << 24;
  return static_cast<std::int32_t>(std::clamp(pixels * kSteps, -kLimit, kLimit));
}

/// Whether a line of pixel centres goes through a range.
bool has_centre(std::int32_t least, std::int32_t most) noexcept {
  return (least - kCentre) >> 4 != (most - kCentre) >> 4;
}

BinRange bins_of(std::int32_t least, std::int32_t most, std::size_t pixels) noexcept {
  const auto count = static_cast<std::int32_t>((pixels + kBin - 1) / kBin);
  const std::int32_t last = ((most + kBox - 1) & -kBox) / kBinSteps;
  return {std::max(0, (least & -kBox) / kBinSteps), std::min(last + 1, count)};
}

}  // namespace

RasterCamera::RasterCamera(std::size_t width, std::size_t height, double degrees)
    : width_(static_cast<float>(width)), height_(static_cast<float>(height)) {
  const double angle = degrees * std::numbers::pi / 180;
  const double sine = std::sin(angle), cosine = std::cos(angle);
  eye_ = {static_cast<float>(4 * cosine + 3 * sine), 3, static_cast<float>(3 * cosine - 4 * sine)};
  away_ = unit(eye_);
  const Vector right = unit(cross({0, 1, 0}, away_));
  const auto zoom = static_cast<float>(1 / std::tan(kFieldOfView * std::numbers::pi / 360));
  up_ = scaled(cross(away_, right), zoom);
  right_ = scaled(right, zoom * height_ / width_);
}

Vector RasterCamera::project(const Vector& point) const noexcept {
  constexpr auto kScale = static_cast<float>(kFar / (kFar - kNear));
  const Vector from = difference(point, eye_);
  const float distance = -dot(away_, from);
  return {(dot(right_, from) / distance + 1) * 0.5F * width_,
          (dot(up_, from) / distance + 1) * 0.5F * height_,
          kScale * (1 - static_cast<float>(kNear) / distance)};
}

LitTriangle cube_triangle(std::size_t index, const RasterCamera& camera) noexcept {
  const Face& face = kFaces[index];
  LitTriangle triangle;
  for (std::size_t i = 0; i < 3; ++i) {
    const Vector& corner = kCorners[face.corners[i]];
    triangle.corners[i] = camera.project(corner);
    triangle.colours[i] = light(corner, face.normal, camera.eye());
  }
  return triangle;
}

Setup::Setup(const LitTriangle& lit, std::size_t width, std::size_t height) noexcept {
  SnappedTriangle& t = triangle_;
  const std::int32_t right = static_cast<std::int32_t>(width) * kSteps + kGuard;
  const std::int32_t top = static_cast<std::int32_t>(height) * kSteps + kGuard;
  visible_ = true;
  for (std::size_t i = 0; i < 3; ++i) {
    t.x[i] = snap(lit.corners[i][0]);
    t.y[i] = snap(lit.corners[i][1]);
    t.depth[i] = lit.corners[i][2];
    t.colours[i] = lit.colours[i];
    visible_ = visible_ && t.x[i] >= -kGuard && t.x[i] < right && t.y[i] >= -kGuard && t.y[i] < top;
  }
  const auto [left_x, right_x] = std::minmax_element(t.x.begin(), t.x.end());
  const auto [low_y, high_y] = std::minmax_element(t.y.begin(), t.y.end());
  visible_ = visible_ && edge(t, 0, t.x[2], t.y[2]) > 0 && has_centre(*left_x, *right_x) &&
             has_centre(*low_y, *high_y);
  columns_ = bins_of(*left_x, *right_x, width);
  rows_ = bins_of(*low_y, *high_y, height);
}

bool Setup::touches(std::int32_t column, std::int32_t row) const noexcept {
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t next = (i + 1) % 3;
    // The corner of the bin that is furthest inside.
    const bool right = triangle_.y[next] < triangle_.y[i];
    const bool top = triangle_.x[next] >= triangle_.x[i];
    if (edge(triangle_, i, (column + right) * kBinSteps, (row + top) * kBinSteps) < 0) return false;
  }
  return true;
}

void draw_pixel(const SnappedTriangle& t, std::int32_t x, std::int32_t y,
                DepthFrame& frame) noexcept {
  const std::int32_t at_x = x * kSteps + kCentre, at_y = y * kSteps + kCentre;
  std::array<std::int64_t, 3> inner;
  for (std::size_t i = 0; i < 3; ++i) inner[i] = edge(t, i, at_x, at_y);
  if (std::min({inner[0], inner[1], inner[2]}) < 0) return;
  const auto area = static_cast<double>(inner[0] + inner[1] + inner[2]);
  // An edge belongs to the corner on its other side.
  const double share[] = {static_cast<double>(inner[1]) / area,
                          static_cast<double>(inner[2]) / area,
                          static_cast<double>(inner[0]) / area};
  double depth = 0;
  std::array<double, 3> colour = {};
  for (std::size_t corner = 0; corner < 3; ++corner) {
    depth += share[corner] * t.depth[corner];
    for (std::size_t i = 0; i < 3; ++i) colour[i] += share[corner] * t.colours[corner][i];
  }
  const auto level = [](double part) { return static_cast<std::uint8_t>(part * 255); };
  frame.draw(static_cast<std::size_t>(x), static_cast<std::size_t>(y), static_cast<float>(depth),
             {level(colour[0]), level(colour[1]), level(colour[2])});
}

void draw_bin(const BinTask& task, DepthFrame& frame) noexcept {
  const std::int32_t end_x =
      std::min((task.column + 1) * kBin, static_cast<std::int32_t>(frame.width()));
  const std::int32_t end_y =
      std::min((task.row + 1) * kBin, static_cast<std::int32_t>(frame.height()));
  for (std::int32_t y = task.row * kBin; y < end_y; ++y) {
    for (std::int32_t x = task.column * kBin; x < end_x; ++x) {
      draw_pixel(task.triangle, x, y, frame);
    }
  }
}

}  // namespace weir::apps
