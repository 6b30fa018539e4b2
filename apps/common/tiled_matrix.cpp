#include "common/tiled_matrix.hpp"

namespace weir::apps {

TileDirectory::TileDirectory(std::size_t tiles, std::size_t lanes) : tiles_(tiles), lanes_(lanes) {
  reset();
}

void TileDirectory::reset() {
  for (Tile& tile : tiles_) {
    tile.copies.assign(1, {nullptr, nullptr, {}});
    tile.ordered.assign(lanes_, false);
  }
}

const TileDirectory::Copy* TileDirectory::find(const Tile& tile, weir_domain* memory) const {
  const auto found = std::find_if(tile.copies.begin(), tile.copies.end(),
                                  [=](const Copy& copy) { return copy.memory == memory; });
  return found == tile.copies.end() ? nullptr : &*found;
}

void TileDirectory::fetch(const Lane& lane, std::size_t index, const weir::Region& region) {
  Tile& tile = tiles_[index];
  if (tile.ordered[lane.index]) return;
  tile.ordered[lane.index] = true;
  if (lane.memory == nullptr) collect(index, region);
  const Copy* const here = find(tile, lane.memory);
  const Copy source = here != nullptr ? *here : tile.copies.front();
  if (source.lane != nullptr && source.lane != &lane) lane.stream.wait(source.ready, region);
  if (here != nullptr) return;
  const weir::Event arrived = lane.stream.transfer({source.memory, region.buffer, region.region},
                                                   {lane.memory, region.buffer, region.region});
  tile.copies.push_back({lane.memory, &lane, arrived});
}

void TileDirectory::wrote(const Lane& lane, std::size_t index, const weir::Event& written) {
  Tile& tile = tiles_[index];
  tile.copies.assign(1, {lane.memory, &lane, written});
  tile.ordered.assign(lanes_, false);
  tile.ordered[lane.index] = true;
}

void TileDirectory::collect(std::size_t index, const weir::Region& region) {
  Tile& tile = tiles_[index];
  if (find(tile, nullptr) != nullptr) return;
  const Lane* const holder = tile.copies.front().lane;
  tile.copies.push_back({nullptr, holder, holder->stream.download(region)});
}

}  // namespace weir::apps
