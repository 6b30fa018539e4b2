#include "common/tile_grid.hpp"

#include <algorithm>

namespace weir::apps {

TileGrid::TileGrid(const Lanes& lanes, std::size_t width, std::size_t height, std::size_t edge)
    : width_(width), height_(height), across_((width + edge - 1) / edge) {
  const std::size_t down = (height + edge - 1) / edge;
  const std::vector<const Lane*> owners = lanes.spread_in_order(across_ * down);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::size_t x = i % across_ * edge, y = i / across_ * edge;
    tiles_.push_back(
        {x, y, std::min(edge, width - x), std::min(edge, height - y), owners[i], 0, {}});
    find_neighbours(i);
  }
}

void TileGrid::find_neighbours(std::size_t index) {
  GridTile& tile = tiles_[index];
  const std::array<bool, kSides> ends = {tile.y == 0, tile.y + tile.height == height_, tile.x == 0,
                                         tile.x + tile.width == width_};
  tile.beside = {index - across_, index + across_, index - 1, index + 1};
  for (unsigned side = 0; side < kSides; ++side) tile.edges |= ends[side] ? 1u << side : 0;
}

bool TileSteps::has_far_neighbour(const GridTile& tile) const noexcept {
  for (unsigned side = 0; side < kSides; ++side) {
    if ((tile.edges >> side & 1) != 0) continue;
    if (grid_[tile.beside[side]].lane->memory != tile.lane->memory) return true;
  }
  return false;
}

/// What a strip held before was read two steps ago, and the neighbour waited for that.
void TileSteps::fetch(const GridTile& tile, std::size_t other, const weir::Region& strip,
                      std::vector<weir::Event>& waits) const {
  const Lane &reader = *tile.lane, &maker = *grid_[other].lane;
  const weir_endpoint source = {maker.memory, strip.buffer, strip.region};
  const weir_endpoint target = {reader.memory, strip.buffer, strip.region};
  if (reader.memory == maker.memory) {
    if (&reader != &maker) waits.push_back(before_[other]);
  } else if (reader.memory == nullptr) {
    waits.push_back(maker.stream.transfer(source, target));
  } else {
    reader.stream.wait(before_[other], strip);
    reader.stream.transfer(source, target);
  }
}

void TileSteps::next() {
  std::swap(before_, now_);
  if (!overlap_) lanes_.meet();
}

}  // namespace weir::apps
