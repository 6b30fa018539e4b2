// Pictures with faces that are drawn, and a cascade that knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/image.hpp"
#include "face_detection/cascade.hpp"
#include "face_detection/detector.hpp"

namespace weir::apps {

struct DrawnPicture {
  ColourImage image;
  std::vector<Box> faces;
};

constexpr std::size_t kDrawnBytes = std::size_t{3} * 480 * 320;  ///< of one in memory

/// Draws five faces of different sizes in colours, among discs and boxes. The same for the same
/// seed.
DrawnPicture draw_faces(std::uint64_t seed);

/// A cascade for such faces, in windows of 24 x 24 pixels: the middle is the brightest part, the
/// eyes and the mouth are darker than what is around them. Photographs need one that was trained.
Cascade drawn_face_cascade();

/// Whether a detector has found a drawn face: near its position, and of about its size.
bool is_about(const Box& found, const Box& drawn);

}  // namespace weir::apps
