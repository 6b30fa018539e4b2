#include "face_detection/window_kernel.hpp"

#include <algorithm>
#include <bit>

#include <weir/portable.h>

#include <windows.wk.h>
#include "face_detection/windows.wk"

namespace weir::apps {

static_assert(sizeof(WindowTile) == TILE_BYTES && sizeof(JudgedTile) == JUDGED_BYTES);
static_assert(WindowTile::kEdge == EDGE && WindowTile::kPlaces == PLACES);
static_assert(static_cast<int>(Verdict::failed) == FAILED &&
              static_cast<int>(Verdict::failed_at_once) == FAILED_AT_ONCE &&
              static_cast<int>(Verdict::face) == FACE);

void JudgedLevel::add(const JudgedTile& tile, const Level& level, const Cascade& cascade) {
  const TileHeader& header = tile.header;
  if (known_ == 0) {
    step_ = header.step;
    const auto windows = [&](std::size_t places) { return (places + step_ - 1) / step_; };
    columns_ = windows(Level::places(level.picture().width, cascade.width));
    verdicts_.resize(columns_ * windows(level.rows(cascade)));
  }
  for (std::size_t row = 0; row < header.rows; ++row) {
    std::copy_n(&tile.verdicts[row * header.columns], header.columns,
                &verdicts_[(header.y / step_ + row) * columns_ + header.x / step_]);
  }
  known_ += std::size_t{header.columns} * header.rows;
}

CascadeTables::CascadeTables(const weir::Runtime& runtime, const Cascade& cascade) {
  std::vector<std::uint32_t> limits, words;
  for (const CascadeStage& stage : cascade.stages) {
    for (const Stump& stump : stage.stumps) {
      const CellGrid& grid = cascade.grids[stump.grid];
      for (const int number : {grid.x, grid.y, grid.width, grid.height}) {
        words.push_back(static_cast<std::uint32_t>(number));
      }
      words.insert(words.end(), stump.bits.begin(), stump.bits.end());
      for (const float leaf : stump.leaves) words.push_back(std::bit_cast<std::uint32_t>(leaf));
    }
    limits.push_back(static_cast<std::uint32_t>(words.size() / STUMP_WORDS));
    limits.push_back(std::bit_cast<std::uint32_t>(stage.threshold));
  }
  const auto loaded = [&](const std::vector<std::uint32_t>& numbers, const char* name) {
    weir::Buffer buffer = runtime.buffer(numbers.size() * sizeof(std::uint32_t), name);
    std::copy(numbers.begin(), numbers.end(), buffer.data<std::uint32_t>());
    return buffer;
  };
  stages = loaded(limits, "stages of the cascade");
  stumps = loaded(words, "stumps of the cascade");
}

weir::Kernel window_kernel(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = &face_windows,
       .source = windows_wk,
       .source_name = "windows.wk",
       .name = "face.windows",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost =
           [](const weir_call* given) {
             // Most windows fail after a few stumps, of nine cells each.
             constexpr double kOperations = 400, kWindows = 640, kSums = 2 * EDGE * EDGE;
             const double tiles = weir::Call(given).scalar<double>(0);
             return weir_cost{(kOperations * kWindows + kSums) * tiles,
                              (sizeof(WindowTile) + sizeof(JudgedTile)) * tiles};
           }},
      [](const weir::Call& call) { return weir::Groups{call.scalar<std::uint32_t>(0)}; });
}

DeviceStage window_stage(const weir::Runtime& runtime, const Cascade& cascade,
                         const CascadeTables& tables) {
  return {
      .kernel = window_kernel(runtime),
      .item_bytes = sizeof(WindowTile),
      .made_bytes = sizeof(JudgedTile),
      .options = {.scalars = {static_cast<std::int32_t>(cascade.stages.size())},
                  .tables = {weir::read(tables.stages.all()), weir::read(tables.stumps.all())}}};
}

}  // namespace weir::apps
