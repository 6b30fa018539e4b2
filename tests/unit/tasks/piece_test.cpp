#include "tasks/piece.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/handle.hpp"

namespace weir::rt {
namespace {

Owned<weir_buffer> make_buffer(std::uint64_t id, std::size_t bytes) {
  return Owned<weir_buffer>(new weir_buffer(nullptr, id, "b", nullptr, bytes, true));
}

Region range(std::uint64_t offset, std::uint64_t bytes) {
  Region region;
  region.offset = offset;
  region.row = bytes;
  return region;
}

Region rows(std::uint64_t offset, std::uint64_t row, std::uint32_t count, std::uint64_t stride) {
  Region region = range(offset, row);
  region.rows = count;
  region.row_stride = stride;
  return region;
}

std::set<const Piece*> overlapping(PieceTable& table, const Buffer& buffer, const Region& region) {
  std::set<const Piece*> found;
  table.each_overlapping(buffer, region, [&](const Piece& piece) {
    EXPECT_TRUE(found.insert(&piece).second) << "a piece comes once";
  });
  return found;
}

std::set<const Piece*> peers_of(const Piece& piece) {
  return {piece.peers.begin(), piece.peers.end()};
}

TEST(Pieces, SameRegionOfABuffer_IsTheSamePiece) {
  PieceTable table;
  const auto a = make_buffer(1, 100), b = make_buffer(2, 100);
  Piece& piece = table.find(*a, range(10, 20));
  EXPECT_EQ(&table.find(*a, range(10, 20)), &piece);
  EXPECT_NE(&table.find(*a, range(10, 21)), &piece);
  EXPECT_NE(&table.find(*b, range(10, 20)), &piece);
  EXPECT_EQ(piece.host_storage.buffer, a.get());
  EXPECT_EQ(piece.host_storage.region.offset, 10u);
  EXPECT_EQ(piece.host_storage.region.extent[0], 20u);
  EXPECT_EQ(piece.bytes(), 20u);
  EXPECT_TRUE(piece.valid_on_host());
  EXPECT_FALSE(piece.valid_in(1));
}

TEST(Pieces, OverlappingPieces_ArePeersOfEachOther) {
  PieceTable table;
  const auto buffer = make_buffer(1, 1000), other = make_buffer(2, 1000);
  Piece& left = table.find(*buffer, range(0, 500));
  Piece& right = table.find(*buffer, range(500, 500));
  Piece& middle = table.find(*buffer, range(499, 2));
  table.find(*other, range(0, 1000));
  EXPECT_EQ(peers_of(left), (std::set<const Piece*>{&middle}));
  EXPECT_EQ(peers_of(right), (std::set<const Piece*>{&middle}));
  EXPECT_EQ(peers_of(middle), (std::set<const Piece*>{&left, &right}));
}

TEST(Pieces, DisjointColumnsOfAMatrix_AreNotPeers) {
  PieceTable table;
  const auto buffer = make_buffer(1, 100);
  Piece& first = table.find(*buffer, rows(0, 2, 10, 10));
  Piece& second = table.find(*buffer, rows(2, 2, 10, 10));
  Piece& row = table.find(*buffer, range(50, 10));
  EXPECT_EQ(peers_of(first), (std::set<const Piece*>{&row}));
  EXPECT_EQ(peers_of(second), (std::set<const Piece*>{&row}));
}

TEST(Pieces, RandomRegions_SearchFindsExactlyTheOverlappingPieces) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t limit) { return std::uint64_t{random()} % limit; };
  for (const std::size_t bytes : {1u, 7u, 255u, 256u, 300u, 5000u}) {
    PieceTable table;
    const auto buffer = make_buffer(bytes, bytes);
    const auto any = [&] {
      const std::uint64_t row = 1 + below(bytes), gap = below(4);
      const auto most = static_cast<std::uint32_t>((bytes + gap) / (row + gap));
      const auto count = static_cast<std::uint32_t>(1 + below(most));
      const std::uint64_t span = (count - 1) * (row + gap) + row;
      return rows(below(bytes - span + 1), row, count, count > 1 ? row + gap : 0);
    };
    std::set<const Piece*> all;
    for (int i = 0; i < 40; ++i) all.insert(&table.find(*buffer, any()));
    for (int i = 0; i < 40; ++i) {
      const Region region = any();
      std::set<const Piece*> expected;
      for (const Piece* piece : all) {
        if (overlap(piece->region, region)) expected.insert(piece);
      }
      EXPECT_EQ(overlapping(table, *buffer, region), expected);
    }
    for (const Piece* piece : all) {
      std::set<const Piece*> expected;
      for (const Piece* peer : all) {
        if (peer != piece && overlap(piece->region, peer->region)) expected.insert(peer);
      }
      EXPECT_EQ(peers_of(*piece), expected);
    }
  }
}

TEST(Pieces, ForgottenBuffer_HasNoPieces) {
  PieceTable table;
  const auto a = make_buffer(1, 100), b = make_buffer(2, 100);
  table.find(*a, range(0, 10));
  Piece& kept = table.find(*b, range(0, 10));
  table.forget(*a);
  EXPECT_TRUE(overlapping(table, *a, range(0, 100)).empty());
  std::vector<const Piece*> left;
  table.each([&](const Piece& piece) { left.push_back(&piece); });
  EXPECT_EQ(left, std::vector<const Piece*>{&kept});
  EXPECT_TRUE(table.find(*a, range(0, 10)).peers.empty());
}

// ---- Expected uses -----------------------------------------------------------------------------

TEST(Pieces, DeferredUsesRemovedInAnyOrder_KeepTheEarliestFirst) {
  DeferredUses expected;
  std::vector<DeferredUse> uses = {{1}, {2}, {3}, {4}};
  for (DeferredUse& use : uses) expected.push(use);
  EXPECT_EQ(expected.first(), 1u);
  expected.remove(uses[1]);
  expected.remove(uses[0]);
  EXPECT_EQ(expected.first(), 3u);
  expected.remove(uses[3]);
  expected.push(uses[3]);
  expected.remove(uses[2]);
  EXPECT_EQ(expected.first(), 4u);
  expected.remove(uses[3]);
  EXPECT_EQ(expected.first(), UINT64_MAX);
  expected.push(uses[0]);
  EXPECT_EQ(expected.first(), 1u);
}

TEST(Pieces, Task_DependsOnlyOnEarlierConflictingDeferredUses) {
  constexpr UseKind kinds[] = {UseKind::read, UseKind::write, UseKind::commute};
  for (const UseKind before : kinds) {
    for (const UseKind after : kinds) {
      Piece piece;
      DeferredUse use{5};
      piece.deferred_as(before).push(use);
      const bool conflicts = before != after || before == UseKind::write;
      EXPECT_EQ(piece.depends_on_deferred(6, after), conflicts);
      EXPECT_FALSE(piece.depends_on_deferred(5, after)) << "a task may use a piece twice";
      EXPECT_FALSE(piece.depends_on_deferred(4, after)) << "later tasks do not count";
      EXPECT_EQ(piece.next_use(), 5u);
    }
  }
}

}  // namespace
}  // namespace weir::rt
