#include "reyes/patch_stages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace weir::apps {

namespace {

constexpr float kNear = 0.02F, kFar = 100, kEye = 3;
constexpr std::uint32_t kMostSplits = 20;
constexpr Point kLight = {0.10F, 0.35F, 0.85F}, kMaterial = {0.1773F, 0.5773F, 0.973F};
constexpr float kAmbient = 0.2F;

Point middle(const Point& a, const Point& b) noexcept {
  return {(a[0] + b[0]) * 0.5F, (a[1] + b[1]) * 0.5F, (a[2] + b[2]) * 0.5F};
}

float distance(const Point& a, const Point& b) noexcept {
  const float x = a[0] - b[0], y = a[1] - b[1];
  return std::sqrt(x * x + y * y);
}

float length_of(const Point& a, const Point& b, const Point& c, const Point& d) noexcept {
  return distance(a, b) + distance(b, c) + distance(c, d);
}

std::uint32_t pieces(float length) noexcept {
  constexpr std::uint32_t kMost = SmallPatch::kMostPerEdge;
  const float wanted =
      std::min(std::ceil(length / PatchSize::kMost) + 1, static_cast<float>(kMost));
  return std::clamp(std::bit_ceil(static_cast<std::uint32_t>(wanted)), 2U, kMost);
}

/// The polynomials of Bernstein at t, and their derivatives.
struct Weights {
  explicit Weights(float t) noexcept {
    const float s = 1 - t;
    value = {s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t};
    slope = {-3 * s * s, 3 * s * s - 6 * s * t, 6 * s * t - 3 * t * t, 3 * t * t};
  }
  std::array<float, 4> value, slope;
};

Point mixed(const std::array<Point, 16>& points, const std::array<float, 4>& rows,
            const std::array<float, 4>& columns) noexcept {
  Point sum = {};
  for (std::size_t i = 0; i < 16; ++i) {
    const float weight = rows[i / 4] * columns[i % 4];
    for (std::size_t axis = 0; axis < 3; ++axis) sum[axis] += weight * points[i][axis];
  }
  return sum;
}

Point normal_of(const Point& a, const Point& b) noexcept {
  Point normal = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  const float length =
      std::sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
  if (length > 0) {
    for (float& part : normal) part /= length;
  }
  return normal;
}

/// The colour of a micropolygon in light, from the normals of its corners.
std::uint32_t colour_of(const std::array<Point, 4>& normals) noexcept {
  Point sum = {};
  for (const Point& normal : normals) {
    const float facing =
        std::max(0.0F, -(normal[0] * kLight[0] + normal[1] * kLight[1] + normal[2] * kLight[2]));
    for (std::size_t i = 0; i < 3; ++i) {
      sum[i] += std::clamp(kAmbient + facing * kMaterial[i], 0.0F, 1.0F);
    }
  }
  const auto level = [](float part) { return static_cast<std::uint32_t>(part * 0.25F * 255.0F); };
  return level(sum[0]) | level(sum[1]) << 8 | level(sum[2]) << 16;
}

/// Whether a point is strictly inside of the corners, whichever way they go round.
bool inside(const Micropolygon& polygon, float x, float y) noexcept {
  bool left = true, right = true;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto &a = polygon.corners[i], &b = polygon.corners[(i + 1) % 4];
    const float side = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    left = left && side > 0;
    right = right && side < 0;
  }
  return left || right;
}

/// The pixels between two coordinates, from the first to behind the last.
struct PixelRange {
  PixelRange(float least, float most, float size) noexcept
      : first(static_cast<std::size_t>(std::clamp(std::floor(least), 0.0F, size))),
        end(static_cast<std::size_t>(std::clamp(std::ceil(most), 0.0F, size))) {}
  std::size_t first, end;
};

}  // namespace

ReyesCamera::ReyesCamera(std::size_t columns, std::size_t rows)
    : width(static_cast<float>(columns)), height(static_cast<float>(rows)) {
  const float top = kNear * std::tan(std::numbers::pi_v<float> / 6), right = top * (width / height);
  scale_x = 2 * kNear / (right + right);
  scale_y = 2 * kNear / (top + top);
  scale_z = -(kFar + kNear) / (kFar - kNear);
  shift_z = scale_z * -kEye - 2 * kFar * kNear / (kFar - kNear);
}

Point ReyesCamera::project(const Point& point) const noexcept {
  const float distance = kEye - point[2];
  const float w = distance == 0 ? 1 : distance;
  return {(scale_x * point[0] / w + 1) * 0.5F * width, (scale_y * point[1] / w + 1) * 0.5F * height,
          (scale_z * point[2] + shift_z) / w};
}

PatchSize size_of(const Patch& patch, const ReyesCamera& camera) noexcept {
  std::array<Point, 16> on_screen;
  for (std::size_t i = 0; i < 16; ++i) on_screen[i] = camera.project(patch.points[i]);
  const Point* const p = on_screen.data();
  PatchSize size{0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    size.u = std::max(size.u, length_of(p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]));
    size.v = std::max(size.v, length_of(p[i], p[i + 4], p[i + 8], p[i + 12]));
  }
  return size;
}

bool is_small(const Patch& patch, const PatchSize& size) noexcept {
  return size.fits() || patch.splits >= kMostSplits;
}

std::array<Patch, 2> halves_of(const Patch& patch, const PatchSize& size) noexcept {
  const bool along_rows = size.u >= PatchSize::kMost;
  const std::size_t step = along_rows ? 1 : 4, across = along_rows ? 4 : 1;
  std::array<Patch, 2> halves;
  for (Patch& half : halves) half.splits = patch.splits + 1;
  for (std::size_t line = 0; line < 4; ++line) {
    const std::size_t at = line * across;
    const Point* const p = &patch.points[at];
    Point *const low = &halves[0].points[at], *const high = &halves[1].points[at];
    const Point centre = middle(p[step], p[2 * step]);
    low[0] = p[0];
    low[step] = middle(p[0], p[step]);
    low[2 * step] = middle(low[step], centre);
    high[3 * step] = p[3 * step];
    high[2 * step] = middle(p[2 * step], p[3 * step]);
    high[step] = middle(centre, high[2 * step]);
    high[0] = low[3 * step] = middle(low[2 * step], high[step]);
  }
  return halves;
}

SmallPatch small_patch(const Patch& patch, const PatchSize& size) noexcept {
  return {patch.points, pieces(size.u), pieces(size.v), 0};
}

Micropolygon micropolygon(const SmallPatch& patch, const ReyesCamera& camera,
                          std::size_t index) noexcept {
  const std::size_t row = patch.first_row() + index / patch.columns();
  const std::size_t column = patch.first_column() + index % patch.columns();
  Micropolygon polygon;
  std::array<Point, 4> normals;
  float depth = 0;
  for (std::size_t corner = 0; corner < 4; ++corner) {
    const std::size_t up = corner / 2, right = corner == 1 || corner == 2 ? 1 : 0;
    const Weights rows(static_cast<float>(row + up) / static_cast<float>(patch.along_v));
    const Weights columns(static_cast<float>(column + right) / static_cast<float>(patch.along_u));
    const Point at = camera.project(mixed(patch.points, rows.value, columns.value));
    polygon.corners[corner] = {at[0], at[1]};
    depth += at[2];
    normals[corner] = normal_of(mixed(patch.points, rows.value, columns.slope),
                                mixed(patch.points, rows.slope, columns.value));
  }
  polygon.depth = depth * 0.25F;
  polygon.colour = colour_of(normals);
  return polygon;
}

void shade(const Micropolygon& polygon, DepthFrame& frame) noexcept {
  std::array<float, 2> least = polygon.corners[0], most = least;
  for (const auto& corner : polygon.corners) {
    for (std::size_t i = 0; i < 2; ++i) {
      least[i] = std::min(least[i], corner[i]);
      most[i] = std::max(most[i], corner[i]);
    }
  }
  const PixelRange columns(least[0], most[0], static_cast<float>(frame.width()));
  const PixelRange rows(least[1], most[1], static_cast<float>(frame.height()));
  const auto level = [&](int shift) {
    return static_cast<std::uint8_t>(polygon.colour >> shift & 255);
  };
  const Colour colour = {level(0), level(8), level(16)};
  for (std::size_t y = rows.first; y < rows.end; ++y) {
    for (std::size_t x = columns.first; x < columns.end; ++x) {
      if (inside(polygon, static_cast<float>(x) + 0.5F, static_cast<float>(y) + 0.5F)) {
        frame.draw(x, y, polygon.depth, colour);
      }
    }
  }
}

}  // namespace weir::apps
