#include "tasks/piece.hpp"

#include <utility>

namespace weir::rt {

namespace {

weir_region public_form(const Region& region) {
  return {region.offset,
          {region.row, region.rows, region.planes},
          {region.row_stride, region.plane_stride}};
}

}  // namespace

bool Piece::depends_on_deferred(std::uint64_t sequence, UseKind kind) const noexcept {
  for (std::size_t other = 0; other < deferred.size(); ++other) {
    const bool passes = other == static_cast<std::size_t>(kind) && kind != UseKind::write;
    if (!passes && deferred[other].first() < sequence) return true;
  }
  return false;
}

const std::vector<Piece*>& PieceTable::RegionIndex::candidates(const Region& region,
                                                               std::uint64_t search) noexcept {
  found.clear();
  const std::uint64_t last = (region.end() - 1) / stretch;
  for (std::uint64_t bin = region.offset / stretch; bin <= last; ++bin) {
    for (Piece* piece : bins[bin]) {
      if (std::exchange(piece->search_mark, search) != search) found.push_back(piece);
    }
  }
  return found;
}

Piece& PieceTable::find(weir_buffer& buffer, const Region& region) {
  RegionIndex& index = buffers_[buffer.id()];
  const auto known = index.by_region.find(region);
  if (known != index.by_region.end()) return *known->second;
  index.stretch = buffer.bytes() / kBins + 1;
  auto made = std::make_unique<Piece>();
  made->region = region;
  made->host_storage.buffer = &buffer;
  made->host_storage.region = public_form(region);
  Piece& piece = *made;
  index.pieces.push_back(std::move(made));
  index.found.reserve(index.pieces.capacity());
  for (Piece* other : index.candidates(region, ++searches_)) {
    if (overlap(other->region, region)) piece.peers.push_back(other);
  }
  for (Piece* peer : piece.peers) peer->peers.push_back(&piece);
  const std::uint64_t last = (region.end() - 1) / index.stretch;
  for (std::uint64_t bin = region.offset / index.stretch; bin <= last; ++bin) {
    index.bins[bin].push_back(&piece);
  }
  index.by_region.emplace(region, &piece);
  return piece;
}

void PieceTable::forget(const Buffer& buffer) noexcept { buffers_.erase(buffer.id()); }

}  // namespace weir::rt
