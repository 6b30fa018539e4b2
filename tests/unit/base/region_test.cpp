#include "base/region.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "base/error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

std::set<std::uint64_t> bytes_of(const Region& region) {
  std::set<std::uint64_t> bytes;
  for (std::uint64_t plane = 0; plane < region.planes; ++plane) {
    for (std::uint64_t row = 0; row < region.rows; ++row) {
      for (std::uint64_t byte = 0; byte < region.row; ++byte) {
        bytes.insert(region.offset + plane * region.plane_stride + row * region.row_stride + byte);
      }
    }
  }
  return bytes;
}

Region random_region() {
  using rc::gen::inRange;
  const auto row = *inRange<std::size_t>(1, 9);
  const auto rows = *inRange<std::size_t>(1, 6);
  const auto row_stride = row + *inRange<std::size_t>(0, 9);
  const auto span = (rows - 1) * row_stride + row;
  const auto planes = *inRange<std::size_t>(1, 4);
  const auto plane_stride = span + *inRange<std::size_t>(0, 12);
  const auto offset = *inRange<std::size_t>(0, 120);
  return make_region({offset, {row, rows, planes}, {row_stride, plane_stride}}, 10'000, "a buffer");
}

RC_GTEST_PROP(Region, OverlapIsExact, ()) {
  const Region a = random_region(), b = random_region();
  const auto in_a = bytes_of(a), in_b = bytes_of(b);
  bool shared = false;
  for (const std::uint64_t byte : in_a) shared = shared || in_b.contains(byte);
  RC_ASSERT(overlap(a, b) == shared);
  RC_ASSERT(overlap(b, a) == shared);
  RC_ASSERT(a.bytes() == in_a.size());
  RC_ASSERT(a.end() == *in_a.rbegin() + 1);
}

TEST(Region, DisjointTilesOfOneMatrix_DoNotOverlap) {
  const auto tile = [](std::size_t row, std::size_t column) {
    return make_region(weir_region_tile(row, column, 256, 256, 4096, 8), 4096u * 4096 * 8, "A");
  };
  EXPECT_FALSE(overlap(tile(0, 0), tile(256, 0)));
  EXPECT_FALSE(overlap(tile(0, 0), tile(0, 256)));
  EXPECT_FALSE(overlap(tile(256, 0), tile(0, 256)));
  EXPECT_TRUE(overlap(tile(0, 0), tile(255, 255)));
  EXPECT_TRUE(overlap(tile(512, 512), tile(512, 512)));
}

TEST(Region, StridesOfASingleRowAndPlane_AreIgnored) {
  EXPECT_EQ(make_region({0, {8, 0, 0}, {99, 99}}, 100, "b"),
            make_region({0, {8, 1, 1}, {0, 0}}, 100, "b"));
}

struct BadRegion {
  weir_region region;
  const char* message;
};

class BadRegions : public testing::TestWithParam<BadRegion> {};

TEST_P(BadRegions, AreRefusedWithTheReason) {
  const std::string why = thrown_by<Error>(
      [] { make_region(GetParam().region, 1000, "buffer 'x'"); }, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(why.find(GetParam().message), std::string::npos) << why;
  EXPECT_NE(why.find("buffer 'x'"), std::string::npos) << why;
}

INSTANTIATE_TEST_SUITE_P(Region, BadRegions,
                         testing::Values(BadRegion{{0, {0, 1, 1}, {0, 0}}, "empty"},
                                         BadRegion{{0, {1001, 1, 1}, {0, 0}}, "outside"},
                                         BadRegion{{1000, {1, 1, 1}, {0, 0}}, "outside"},
                                         BadRegion{{SIZE_MAX, {8, 1, 1}, {0, 0}}, "(offset -1, "},
                                         BadRegion{{8, {SIZE_MAX, 1, 1}, {0, 0}}, "extent -1x1x1"},
                                         BadRegion{{0, {8, 2, 1}, {7, 0}}, "rows of the region"},
                                         BadRegion{{0, {8, 2, 2}, {16, 23}},
                                                   "planes of the region"},
                                         BadRegion{{0, {8, 3, 1}, {SIZE_MAX / 2, 0}}, "outside"},
                                         BadRegion{{0, {8, 2, 3}, {16, SIZE_MAX / 2}}, "outside"},
                                         BadRegion{{900, {8, 13, 1}, {8, 0}}, "outside"},
                                         BadRegion{{0, {1, 1, 70'000}, {0, 1}}, "too large"}));

}  // namespace
}  // namespace weir::rt
