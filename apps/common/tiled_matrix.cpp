#include "common/tiled_matrix.hpp"

namespace weir::apps {

TileDirectory::TileDirectory(std::size_t tiles, std::size_t app_streams)
    : tiles_(tiles), app_stream_count_(app_streams) {
  reset();
}

void TileDirectory::reset() {
  for (Tile& tile : tiles_) {
    tile.copies.assign(1, {nullptr, nullptr, {}});
    tile.ordered.assign(app_stream_count_, false);
  }
}

const TileDirectory::Copy* TileDirectory::find(const Tile& tile, weir_domain* memory) const {
  const auto found = std::find_if(tile.copies.begin(), tile.copies.end(),
                                  [=](const Copy& copy) { return copy.memory == memory; });
  return found == tile.copies.end() ? nullptr : &*found;
}

void TileDirectory::fetch(const AppStream& app_stream, std::size_t index,
                          const weir::Region& region) {
  Tile& tile = tiles_[index];
  if (tile.ordered[app_stream.index]) return;
  tile.ordered[app_stream.index] = true;
  if (app_stream.memory == nullptr) collect(index, region);
  const Copy* const here = find(tile, app_stream.memory);
  const Copy source = here != nullptr ? *here : tile.copies.front();
  if (source.stream != nullptr && source.stream != &app_stream)
    app_stream.stream.wait(source.ready, region);
  if (here != nullptr) return;
  const weir::Event arrived =
      app_stream.stream.transfer({source.memory, region.buffer, region.region},
                                 {app_stream.memory, region.buffer, region.region});
  tile.copies.push_back({app_stream.memory, &app_stream, arrived});
}

void TileDirectory::wrote(const AppStream& app_stream, std::size_t index,
                          const weir::Event& written) {
  Tile& tile = tiles_[index];
  tile.copies.assign(1, {app_stream.memory, &app_stream, written});
  tile.ordered.assign(app_stream_count_, false);
  tile.ordered[app_stream.index] = true;
}

void TileDirectory::collect(std::size_t index, const weir::Region& region) {
  Tile& tile = tiles_[index];
  if (find(tile, nullptr) != nullptr) return;
  const AppStream* const holder = tile.copies.front().stream;
  tile.copies.push_back({nullptr, holder, holder->stream.download(region)});
}

}  // namespace weir::apps
