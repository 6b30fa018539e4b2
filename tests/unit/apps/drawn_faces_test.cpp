// Faces that are drawn are found, whatever the seed.
#include "face_detection/drawn_faces.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::apps {
namespace {

std::vector<Box> faces_of(const ColourImage& image) {
  const Cascade cascade = drawn_face_cascade();
  const Image grey = grey_of(image);
  std::vector<Box> candidates;
  for (const float scale : scales_of(grey.width, grey.height, cascade, 1.1)) {
    Level level;
    level.resize(grey, scale);
    level.integrate(cascade);
    level.scan(cascade, 0, level.rows(cascade), [&](const Box& box) { candidates.push_back(box); });
  }
  return group(candidates, 3);
}

TEST(DrawnFaces, EveryFace_IsDetectedOnceWithoutFalsePositives) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const DrawnPicture drawn = draw_faces(seed);
    std::vector<Box> found = faces_of(drawn.image);
    std::sort(found.begin(), found.end());
    ASSERT_EQ(drawn.faces.size(), 5u);
    ASSERT_EQ(found.size(), drawn.faces.size()) << "seed " << seed;
    for (const Box& face : drawn.faces) {
      EXPECT_EQ(std::count_if(found.begin(), found.end(),
                              [&](const Box& each) { return is_about(each, face); }),
                1)
          << "seed " << seed << ": " << face.x << ", " << face.y;
    }
  }
}

TEST(DrawnFaces, BlankPicture_HasNoFacesAndUnlikeBoxesDoNotMatch) {
  ColourImage empty{480, 320, std::vector<std::uint8_t>(std::size_t{3} * 480 * 320, 120)};
  EXPECT_TRUE(faces_of(empty).empty());
  EXPECT_FALSE(is_about({0, 0, 60, 60}, {40, 0, 60, 60}));
  EXPECT_FALSE(is_about({0, 0, 20, 20}, {0, 0, 60, 60}));
  EXPECT_TRUE(is_about({5, 3, 56, 56}, {0, 0, 60, 60}));
}

TEST(DrawnFaces, EqualSeeds_DrawEqualPicturesAndOthersDiffer) {
  EXPECT_EQ(draw_faces(7).image.colours, draw_faces(7).image.colours);
  EXPECT_EQ(draw_faces(7).faces, draw_faces(7).faces);
  EXPECT_NE(draw_faces(7).faces, draw_faces(8).faces);
}

}  // namespace
}  // namespace weir::apps
