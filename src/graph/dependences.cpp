#include "graph/dependences.hpp"

#include <algorithm>
#include <numeric>

namespace weir::rt {

namespace {

/// The pieces that overlap each piece without being equal to it.
std::vector<std::vector<std::uint32_t>> find_peers(const std::vector<CallList::Piece>& pieces) {
  std::vector<std::uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t at) {
      return std::pair(pieces[at].buffer, pieces[at].region.offset);
    };
    return key(a) < key(b);
  });
  std::vector<std::vector<std::uint32_t>> peers(pieces.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const CallList::Piece& piece = pieces[order[i]];
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const CallList::Piece& other = pieces[order[j]];
      if (other.buffer != piece.buffer || other.region.offset >= piece.region.end()) break;
      if (!overlap(piece.region, other.region)) continue;
      peers[order[i]].push_back(order[j]);
      peers[order[j]].push_back(order[i]);
    }
  }
  return peers;
}

/// The accesses to a piece so far.
struct Accesses {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t writer = kNone;
  std::vector<std::uint32_t> readers;  ///< since the last write

  void add_conflicts(bool writes, std::vector<std::uint32_t>& found) const {
    if (writer != kNone) found.push_back(writer);
    if (writes) found.insert(found.end(), readers.begin(), readers.end());
  }
  void note(std::uint32_t call, bool writes) {
    if (writes) {
      writer = call;
      readers.clear();
    } else {
      readers.push_back(call);
    }
  }
};

}  // namespace

Dependences::Dependences(const CallList& list) {
  const auto peers = find_peers(list.pieces());
  std::vector<Accesses> pieces(list.pieces().size());
  std::vector<std::uint32_t> found;
  first_.reserve(list.calls().size() + 1);
  first_.push_back(0);
  for (std::uint32_t at = 0; at < list.calls().size(); ++at) {
    const auto uses = list.uses_of(list.calls()[at]);
    found.clear();
    for (const CallList::Use& use : uses) {
      pieces[use.piece].add_conflicts(use.writes(), found);
      for (const std::uint32_t peer : peers[use.piece]) {
        pieces[peer].add_conflicts(use.writes(), found);
      }
    }
    for (const CallList::Use& use : uses) pieces[use.piece].note(at, use.writes());
    std::ranges::sort(found);
    const auto repeated = std::ranges::unique(found);
    earlier_.insert(earlier_.end(), found.begin(), repeated.begin());
    first_.push_back(earlier_.size());
  }
}

}  // namespace weir::rt
