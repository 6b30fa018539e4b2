#include "raster/bin_kernel.hpp"

#include <weir/portable.h>

#include <bins.wk.h>
#include "raster/bins.wk"

namespace weir::apps {

static_assert(sizeof(BinTask) == TASK_WORDS * sizeof(std::uint32_t));
static_assert(sizeof(DrawnBin) == MADE_WORDS * sizeof(std::uint32_t));

weir::Kernel bin_kernel(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = &raster_bins,
       .source = bins_wk,
       .source_name = "bins.wk",
       .name = "raster.bins",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost =
           [](const weir_call* given) {
             constexpr double kOperations = 40;  // for a pixel
             const double bins = weir::Call(given).scalar<double>(0);
             return weir_cost{kOperations * PIXELS * bins,
                              (sizeof(BinTask) + sizeof(DrawnBin)) * bins};
           }},
      [](const weir::Call& call) { return weir::Groups{call.scalar<std::uint32_t>(0)}; });
}

DeviceStage bin_stage(const weir::Runtime& runtime, std::size_t width, std::size_t height) {
  return {.kernel = bin_kernel(runtime),
          .item_bytes = sizeof(BinTask),
          .made_bytes = sizeof(DrawnBin),
          .options = {
              .scalars = {static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)}}};
}

void blend(const DrawnBin& bin, DepthFrame& frame) noexcept {
  for (std::size_t i = 0; i < bin.words.size(); ++i) {
    if (bin.words[i] == DepthFrame::kFar) continue;
    const std::size_t x = static_cast<std::size_t>(bin.column) * kBin + i % kBin;
    const std::size_t y = static_cast<std::size_t>(bin.row) * kBin + i / kBin;
    if (x < frame.width() && y < frame.height()) frame.draw(x, y, bin.words[i]);
  }
}

}  // namespace weir::apps
