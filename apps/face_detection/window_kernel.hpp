// The kernel that judges windows on a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weir/weir.hpp>

#include "common/chunk_loop.hpp"
#include "face_detection/cascade.hpp"
#include "face_detection/detector.hpp"

namespace weir::apps {

/// Which windows of a level a tile has: every `step` pixels one, from (x, y) on.
struct TileHeader {
  std::uint32_t level, x, y, columns, rows, step;
};
/// The pixels of these windows.
struct WindowTile {
  static constexpr std::size_t kEdge = 80;    ///< pixels
  static constexpr std::size_t kPlaces = 32;  ///< pixels in which windows begin, in each direction
  static constexpr int kMostWindow = kEdge - kPlaces;
  TileHeader header;
  std::array<std::uint8_t, kEdge * kEdge> pixels;
};
/// The result of the kernel: a Verdict for each window, row by row.
struct JudgedTile {
  TileHeader header;
  std::array<std::uint8_t, WindowTile::kPlaces * WindowTile::kPlaces> verdicts;
};

/// Calls put(tile) for the windows of a level, whose windows are of kMostWindow pixels at most.
template <class Put>
void cut(const Level& level, const Cascade& cascade, std::uint32_t number, const Put& put);

/// The windows of a level, as far as they have been judged.
class JudgedLevel {
 public:
  void add(const JudgedTile& tile, const Level& level, const Cascade& cascade);
  /// Whether all are.
  bool complete() const noexcept { return known_ == verdicts_.size() && known_ > 0; }
  Verdict operator()(std::size_t x, std::size_t y) const noexcept {
    return static_cast<Verdict>(verdicts_[y / step_ * columns_ + x / step_]);
  }

 private:
  std::size_t step_ = 1, columns_ = 0, known_ = 0;
  std::vector<std::uint8_t> verdicts_;
};

/// A cascade in the layout that the kernel reads.
struct CascadeTables {
  CascadeTables(const weir::Runtime& runtime, const Cascade& cascade);
  weir::Buffer stages, stumps;
};

/// The kernel of the stage, which a rank registers that serves it to others.
weir::Kernel window_kernel(const weir::Runtime& runtime);
/// Makes a JudgedTile of each WindowTile: the same verdicts as Level::scan().
DeviceStage window_stage(const weir::Runtime& runtime, const Cascade& cascade,
                         const CascadeTables& tables);

// ---- Tiles -------------------------------------------------------------------------------------

template <class Put>
void cut(const Level& level, const Cascade& cascade, std::uint32_t number, const Put& put) {
  const Image& picture = level.picture();
  const std::size_t step = level.step(), all = WindowTile::kPlaces;
  const std::size_t columns = Level::places(picture.width, cascade.width);
  for (std::size_t y = 0; y < level.rows(cascade); y += all) {
    for (std::size_t x = 0; x < columns; x += all) {
      const auto windows = [&](std::size_t places) {
        return static_cast<std::uint32_t>((std::min(all, places) + step - 1) / step);
      };
      WindowTile tile{{number, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
                       windows(columns - x), windows(level.rows(cascade) - y),
                       static_cast<std::uint32_t>(step)},
                      {}};
      const std::size_t width = std::min(WindowTile::kEdge, picture.width - x);
      const std::size_t height = std::min(WindowTile::kEdge, picture.height - y);
      for (std::size_t row = 0; row < height; ++row) {
        std::copy_n(&picture.shades[(y + row) * picture.width + x], width,
                    &tile.pixels[row * WindowTile::kEdge]);
      }
      put(tile);
    }
  }
}

}  // namespace weir::apps
