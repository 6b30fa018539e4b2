// The kernel that draws bins on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <weir/weir.hpp>

#include "common/chunk_loop.hpp"
#include "common/depth_frame.hpp"
#include "raster/triangles.hpp"

namespace weir::apps {

/// The pixels of a bin, row by row, as words of a DepthFrame.
struct DrawnBin {
  std::array<std::uint64_t, std::size_t{kBin} * kBin> words;
  std::int32_t column, row;
};

/// The kernel of the stage, which a rank registers that serves it to others.
weir::Kernel bin_kernel(const weir::Runtime& runtime);
/// Makes a DrawnBin of each BinTask: the same bits as draw_bin().
DeviceStage bin_stage(const weir::Runtime& runtime, std::size_t width, std::size_t height);

/// Draws the pixels of a bin that are inside of the frame: a device that skips its kernels returns
/// arbitrary bytes.
void blend(const DrawnBin& bin, DepthFrame& frame) noexcept;

}  // namespace weir::apps
