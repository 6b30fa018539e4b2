#include "reyes/teapot.hpp"

#include <cstddef>

namespace weir::apps {

namespace {

/// A control point of a curve that goes round the axis. The circle is four Bezier curves; `handle`
/// is how far their inner control points are from the ends.
struct Ring {
  double radius, height, handle;
};
constexpr Ring ring(double radius, double height) { return {radius, height, 0.56 * radius}; }

using Profile = std::array<Ring, 4>;
constexpr std::array<Profile, 6> kProfiles = {{
    {ring(80, 30), ring(80, 12), ring(60, 3), ring(60, 0)},              // lower body
    {ring(60, 90), ring(70, 69), ring(80, 48), ring(80, 30)},            // upper body
    {ring(56, 90), ring(53.5, 95.25), ring(57.5, 95.25), ring(60, 90)},  // rim
    {ring(8, 102), ring(16, 96), ring(52, 96), ring(52, 90)},            // lid
    {ring(0, 120), Ring{32, 120, 18}, ring(0, 108), ring(8, 102)},       // knob
    {ring(50, 90), ring(52, 90), ring(54, 90), ring(56, 90)},            // ring under the lid
}};

/// Control points of a tube that is symmetric in y: from one curve in the plane to another, by way
/// of points `width` beside it.
struct Rib {
  double x, z, other_x, other_z, width;
};
using Tube = std::array<Rib, 4>;
constexpr std::array<Tube, 4> kTubes = {{
    {{{68, 51, 68, 18, 26.4},
      {104, 51, 124, 27, 26.4},
      {92, 78, 96, 75, 10},
      {108, 90, 132, 90, 10}}},  // spout
    {{{108, 90, 132, 90, 10},
      {112, 93, 141, 93.75, 10},
      {116, 93, 138, 94.5, 6},
      {112, 90, 128, 90, 6}}},  // its end
    {{{-64, 75, -60, 84, 12},
      {-92, 75, -100, 84, 12},
      {-108, 75, -120, 84, 12},
      {-108, 66, -120, 66, 12}}},  // upper handle
    {{{-108, 66, -120, 66, 12},
      {-108, 57, -120, 48, 12},
      {-100, 39, -106, 31.5, 12},
      {-80, 30, -76, 18, 12}}},  // lower handle
}};
constexpr float kLargest = 141;

/// From the frame of the table, where z is up, to that of the picture.
Point placed(double x, double y, double z) {
  const float scale = 1.0F / kLargest;
  return {static_cast<float>(x) * scale, static_cast<float>(z) * scale - 0.5F,
          1.0F - static_cast<float>(y) * scale};
}

Patch quarter(const Profile& profile, int quarters) {
  Patch patch;
  for (std::size_t row = 0; row < profile.size(); ++row) {
    const Ring& at = profile[row];
    const double along[] = {at.radius, at.radius, at.handle, 0};
    const double across[] = {0, at.handle, at.radius, at.radius};
    for (std::size_t i = 0; i < 4; ++i) {
      double x = along[i], y = across[i];
      for (int rotation = 0; rotation < quarters; ++rotation) {
        const double turned = x;
        x = -y;
        y = turned;
      }
      patch.points[4 * row + i] = placed(x, y, at.height);
    }
  }
  return patch;
}

Patch half(const Tube& tube, bool other) {
  Patch patch;
  for (std::size_t row = 0; row < tube.size(); ++row) {
    const Rib& rib = tube[row];
    const Point points[] = {placed(rib.x, 0, rib.z),
                            placed(rib.x, other ? -rib.width : rib.width, rib.z),
                            placed(rib.other_x, other ? -rib.width : rib.width, rib.other_z),
                            placed(rib.other_x, 0, rib.other_z)};
    for (std::size_t i = 0; i < 4; ++i) patch.points[4 * row + i] = points[other ? 3 - i : i];
  }
  return patch;
}

}  // namespace

std::vector<Patch> teapot() {
  std::vector<Patch> patches;
  for (const Profile& profile : kProfiles) {
    for (int quarters = 0; quarters < 4; ++quarters) patches.push_back(quarter(profile, quarters));
  }
  for (const Tube& tube : kTubes) {
    for (const bool other : {false, true}) patches.push_back(half(tube, other));
  }
  return patches;
}

}  // namespace weir::apps
