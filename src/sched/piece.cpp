#include "sched/piece.hpp"

#include <utility>

namespace weir::rt {

namespace {

weir_region public_form(const Region& region) {
  return {region.offset,
          {region.row, region.rows, region.planes},
          {region.row_stride, region.plane_stride}};
}

}  // namespace

void ExpectedUses::push(ExpectedUse& use) noexcept {
  use.before = last_;
  use.next = nullptr;
  (last_ != nullptr ? last_->next : first_) = &use;
  last_ = &use;
}

void ExpectedUses::remove(ExpectedUse& use) noexcept {
  (use.before != nullptr ? use.before->next : first_) = use.next;
  (use.next != nullptr ? use.next->before : last_) = use.before;
}

bool Piece::awaits_place(std::uint64_t sequence, UseKind kind) const noexcept {
  for (std::size_t other = 0; other < expected.size(); ++other) {
    const bool passes = other == static_cast<std::size_t>(kind) && kind != UseKind::write;
    if (!passes && expected[other].first() < sequence) return true;
  }
  return false;
}

const std::vector<Piece*>& PieceTable::Shelf::candidates(const Region& region,
                                                         std::uint64_t search) noexcept {
  found.clear();
  const std::uint64_t last = (region.end() - 1) / stretch;
  for (std::uint64_t bin = region.offset / stretch; bin <= last; ++bin) {
    for (Piece* piece : bins[bin]) {
      if (std::exchange(piece->mark, search) != search) found.push_back(piece);
    }
  }
  return found;
}

Piece& PieceTable::find(weir_buffer& buffer, const Region& region) {
  Shelf& shelf = buffers_[buffer.id()];
  const auto known = shelf.by_region.find(region);
  if (known != shelf.by_region.end()) return *known->second;
  shelf.stretch = buffer.bytes() / kBins + 1;
  auto made = std::make_unique<Piece>();
  made->region = region;
  made->home.buffer = &buffer;
  made->home.region = public_form(region);
  Piece& piece = *made;
  shelf.pieces.push_back(std::move(made));
  shelf.found.reserve(shelf.pieces.capacity());
  for (Piece* other : shelf.candidates(region, ++searches_)) {
    if (overlap(other->region, region)) piece.peers.push_back(other);
  }
  for (Piece* peer : piece.peers) peer->peers.push_back(&piece);
  const std::uint64_t last = (region.end() - 1) / shelf.stretch;
  for (std::uint64_t bin = region.offset / shelf.stretch; bin <= last; ++bin) {
    shelf.bins[bin].push_back(&piece);
  }
  shelf.by_region.emplace(region, &piece);
  return piece;
}

void PieceTable::forget(const Buffer& buffer) noexcept { buffers_.erase(buffer.id()); }

}  // namespace weir::rt
