// Copies between strided regions against an oracle that lists their bytes one by one.
#include "backend/copy_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace weir::rt {
namespace {

std::vector<std::uint64_t> positions(const Region& region) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t plane = 0; plane < region.planes; ++plane) {
    for (std::uint64_t row = 0; row < region.rows; ++row) {
      for (std::uint64_t i = 0; i < region.row; ++i) {
        all.push_back(region.offset + plane * region.plane_stride + row * region.row_stride + i);
      }
    }
  }
  return all;
}

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void expect_copies(const Region& target_region, const Region& source_region, std::mt19937& random) {
  const std::vector<std::byte> source = random_bytes(source_region.end(), random);
  std::vector<std::byte> target = random_bytes(target_region.end(), random);
  std::vector<std::byte> expected = target;
  const auto from = positions(source_region), to = positions(target_region);
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) expected[to[i]] = source[from[i]];
  copy_bytes(target.data(), target_region, source.data(), source_region);
  ASSERT_EQ(std::memcmp(target.data(), expected.data(), target.size()), 0);
}

/// A region of a shape, with random offset and gaps; a gap of 0 is likely.
Region random_region(std::uint64_t row, std::uint32_t rows, std::uint16_t planes,
                     std::mt19937& random) {
  const auto gap = [&] { return random() % 2 == 0 ? 0 : random() % 9; };
  Region region{.offset = random() % 17, .row = row, .rows = rows, .planes = planes};
  if (rows > 1) region.row_stride = row + gap();
  if (planes > 1) region.plane_stride = (rows > 1 ? rows * region.row_stride : row) + gap();
  return region;
}

TEST(CopyBytes, AgreesWithTheOracleOnRegionsOfOneShape) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t row = 1 + random() % 20;
    const auto rows = static_cast<std::uint32_t>(1 + random() % 5);
    const auto planes = static_cast<std::uint16_t>(1 + random() % 4);
    expect_copies(random_region(row, rows, planes, random),
                  random_region(row, rows, planes, random), random);
  }
}

TEST(CopyBytes, AgreesWithTheOracleOnRegionsOfDifferentShape) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t total = 12 * (1 + random() % 5);
    const std::uint32_t divisors[] = {1, 2, 3, 4, 6, 12};
    const auto shaped = [&] {
      const std::uint32_t rows = divisors[random() % 6];
      return random_region(total / rows, rows, 1, random);
    };
    expect_copies(shaped(), shaped(), random);
  }
}

/// So many bytes that rows of some lengths go past the cache.
TEST(CopyBytes, AgreesWithTheOracleOnLargeRegions) {
  std::mt19937 random(3);
  for (const std::uint64_t row : {255u, 256u, 1024u, 4099u, 16384u, 16385u}) {
    const auto rows = static_cast<std::uint32_t>((1u << 20) / row + 1);
    expect_copies(random_region(row, rows, 1, random), random_region(row, rows, 1, random), random);
    const auto half = static_cast<std::uint32_t>(rows / 2 + 1);
    expect_copies(random_region(row, half, 2, random), random_region(2 * row, half, 1, random),
                  random);
  }
}

TEST(CopyBytes, CopiesPlanesWhoseRowsInterleave) {
  std::mt19937 random(3);
  const Region interleaved{
      .offset = 1, .row = 2, .row_stride = 10, .plane_stride = 3, .rows = 4, .planes = 3};
  const Region dense{.offset = 0, .row = 24};
  expect_copies(dense, interleaved, random);
  expect_copies(interleaved, dense, random);
}

}  // namespace
}  // namespace weir::rt
