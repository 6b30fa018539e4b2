#include "backends/cuda/cuda_packers.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weir::rt {
namespace {

using Bytes = std::vector<std::byte>;

/// A piece of rows with gaps between them, and back from the chunk into other memory.
bool round_trip(CudaPackers& packers, std::size_t row, std::size_t rows, std::size_t stride) {
  Bytes from(stride * rows), to(from.size()), chunk(row * rows);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + i / 251);
  CudaBlock block;
  block.row = row;
  block.rows = rows;
  block.source = {.address = from.data(), .host = true, .row_stride = stride};
  packers.pack({block, chunk.data()});
  block.source = {};
  block.target = {.address = to.data(), .host = true, .row_stride = stride};
  packers.pack({block, chunk.data()});
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to[i] != (i % stride < row ? from[i] : std::byte{0})) return false;
  }
  return true;
}

TEST(CudaPackers, BlocksOfManyShapes_RoundTripThroughAChunk) {
  for (const unsigned helpers : {0u, 1u, 3u}) {
    CudaPackers packers(helpers, "pack");
    EXPECT_TRUE(round_trip(packers, 1, 1, 1));
    EXPECT_TRUE(round_trip(packers, kCudaChunk, 1, kCudaChunk));
    EXPECT_TRUE(round_trip(packers, kCudaChunk - 13, 1, kCudaChunk));
    EXPECT_TRUE(round_trip(packers, 1000, 4000, 1024));
    EXPECT_TRUE(round_trip(packers, 700'001, 5, 800'000));
  }
}

TEST(CudaPackers, ConcurrentCallers_PackTheirBlocksCorrectly) {
  CudaPackers packers(2, "pack");
  std::vector<int> good(3);
  std::vector<std::thread> threads;
  for (int& mine : good) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) mine += round_trip(packers, 5000, 200, 5001) ? 1 : 0;
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(good, std::vector<int>(3, 20));
}

}  // namespace
}  // namespace weir::rt
