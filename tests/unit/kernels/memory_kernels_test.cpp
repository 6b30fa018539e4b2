#include <cstdint>
#include <numeric>

#include "kernel_fixture.hpp"
#include "kernels/memory_calls.hpp"
#include "thrown.hpp"

namespace weir::kernels {
namespace {

class MemoryKernels : public KernelTest {
 protected:
  using Bytes = std::vector<std::uint8_t>;

  static Argument argument(Bytes& bytes, weir_region region, weir_access access) {
    return {bytes.data(), bytes.size(), region, access};
  }
  static Bytes counted(std::size_t size) {
    Bytes bytes(size);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    return bytes;
  }
  /// Calls function(offset) for every byte of a region.
  template <class Function>
  static void for_bytes(const weir_region& region, const Function& function) {
    for (std::size_t plane = 0; plane < region.extent[2]; ++plane) {
      for (std::size_t row = 0; row < region.extent[1]; ++row) {
        for (std::size_t byte = 0; byte < region.extent[0]; ++byte) {
          function(region.offset + plane * region.stride[1] + row * region.stride[0] + byte);
        }
      }
    }
  }
};

const weir_region kShapes[] = {{3, {1, 1, 1}, {0, 0}},   {0, {2'000'000, 1, 1}, {0, 0}},
                               {5, {7, 11, 1}, {13, 0}}, {1, {300'001, 3, 2}, {300'010, 1'000'000}},
                               {0, {16, 1, 9}, {0, 40}}, {0, {1, 1000, 3}, {2, 2500}}};

TEST_F(MemoryKernels, SetFillsTheRegionAndNothingElse) {
  for (const char* name : {"mem.set", "mem.set.team"}) {
    for (const weir_region& shape : kShapes) {
      Bytes bytes = counted(2'100'000), expected = bytes;
      for_bytes(shape, [&](std::size_t at) { expected[at] = 0xa5; });
      succeed(name, {weir_scalar_i64(0xa5)}, {argument(bytes, shape, WEIR_ACCESS_WRITE)});
      EXPECT_TRUE(bytes == expected) << name;
    }
  }
}

TEST_F(MemoryKernels, CopyMovesTheRegionAndNothingElse) {
  for (const char* name : {"mem.copy", "mem.copy.team"}) {
    for (const weir_region& shape : kShapes) {
      Bytes source = counted(2'100'000), target(2'100'000, 0x11), expected = target;
      for_bytes(shape, [&](std::size_t at) { expected[at] = source[at]; });
      succeed(
          name, {},
          {argument(source, shape, WEIR_ACCESS_READ), argument(target, shape, WEIR_ACCESS_WRITE)});
      EXPECT_TRUE(target == expected) << name;
    }
  }
}

TEST_F(MemoryKernels, CopyBetweenDifferentStrides_KeepsTheOrderOfBytes) {
  Bytes source = counted(100), target(100);
  succeed("mem.copy", {},
          {argument(source, {0, {3, 2, 2}, {10, 50}}, WEIR_ACCESS_READ),
           argument(target, weir_region{1, {3, 2, 2}, {3, 6}}, WEIR_ACCESS_WRITE)});
  const Bytes expected = {0, 0, 1, 2, 10, 11, 12, 50, 51, 52, 60, 61, 62, 0};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), target.begin()));
}

/// Rows of one may lie between those of the other.
TEST(CopyCalls, OverlappingRegions_AreRefusedAndInterleavedRowsAreNot) {
  std::vector<std::uint8_t> x(1000);
  const auto refusal = [&](std::size_t from, std::size_t to, std::size_t row, std::size_t rows) {
    const std::size_t stride = rows > 1 ? 10 : 0;
    const weir_view views[] = {{x.data() + from, {row, rows, 1}, {stride, 0}, WEIR_ACCESS_READ},
                               {x.data() + to, {row, rows, 1}, {stride, 0}, WEIR_ACCESS_WRITE}};
    weir_call call{};
    call.operands = views;
    call.operand_count = 2;
    return thrown_by<rt::Error>([&] { const CopyCall checked(call); });
  };
  EXPECT_EQ(refusal(0, 500, 500, 1), "");
  EXPECT_NE(refusal(0, 499, 500, 1).find("1 (X) and 2 (Y) overlap"), std::string::npos);
  EXPECT_NE(refusal(499, 0, 500, 1), "");
  EXPECT_NE(refusal(7, 7, 1, 1), "");
  EXPECT_EQ(refusal(0, 5, 5, 4), "");
  EXPECT_NE(refusal(0, 4, 5, 4), "");
}

TEST_F(MemoryKernels, ByteOutOfRangeOrUnequalExtents_AreRefused) {
  Bytes x(100), y(100);
  const weir_region ten = weir_region_range(0, 10), square = {0, {5, 2, 1}, {5, 0}};
  Ending ending = call("mem.set", {weir_scalar_i64(256)}, {argument(x, ten, WEIR_ACCESS_WRITE)});
  EXPECT_EQ(ending.status, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(ending.message.find("scalar 1 (byte) is 256: expected 0 to 255"), std::string::npos)
      << ending.message;
  ending = call("mem.copy", {},
                {argument(x, ten, WEIR_ACCESS_READ), argument(y, square, WEIR_ACCESS_WRITE)});
  EXPECT_EQ(ending.status, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(ending.message.find("(X) is 10 x 1 x 1 bytes and operand 2 (Y) 5 x 2 x 1"),
            std::string::npos)
      << ending.message;
}

}  // namespace
}  // namespace weir::kernels
