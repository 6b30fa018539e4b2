#include "common/tile_grid.hpp"

#include <algorithm>
#include <cmath>

namespace weir::apps {

TileShape TileShape::of(std::size_t edge, std::size_t aspect, std::size_t grid_width) {
  if (aspect == 1) return {edge, edge};
  const double wanted = static_cast<double>(edge) * std::sqrt(static_cast<double>(aspect));
  const std::size_t width = std::min(grid_width, static_cast<std::size_t>(wanted));
  return {width, std::max<std::size_t>(1, edge * edge / width)};
}

TileGrid::TileGrid(const AppStreams& app_streams, std::size_t width, std::size_t height,
                   const TileShape& shape)
    : width_(width), height_(height), across_((width + shape.width - 1) / shape.width) {
  const std::size_t down = (height + shape.height - 1) / shape.height;
  const std::vector<const AppStream*> owners = app_streams.spread_in_order(across_ * down);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::size_t x = i % across_ * shape.width, y = i / across_ * shape.height;
    tiles_.push_back({x,
                      y,
                      std::min(shape.width, width - x),
                      std::min(shape.height, height - y),
                      owners[i],
                      0,
                      {}});
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
    if (grid_[tile.beside[side]].stream->memory != tile.stream->memory) return true;
  }
  return false;
}

/// The old contents of a strip were read two steps ago, and the neighbour has waited for those
/// reads.
void TileSteps::fetch(const GridTile& tile, std::size_t other, const weir::Region& strip,
                      std::vector<weir::Event>& waits) const {
  const AppStream &reader = *tile.stream, &maker = *grid_[other].stream;
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
  if (!overlap_) app_streams_.synchronize();
}

}  // namespace weir::apps
