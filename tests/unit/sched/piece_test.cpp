#include "sched/piece.hpp"

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

TEST(Pieces, OneRegionIsOnePiece) {
  PieceTable table;
  const auto a = make_buffer(1, 100), b = make_buffer(2, 100);
  Piece& piece = table.find(*a, range(10, 20));
  EXPECT_EQ(&table.find(*a, range(10, 20)), &piece);
  EXPECT_NE(&table.find(*a, range(10, 21)), &piece);
  EXPECT_NE(&table.find(*b, range(10, 20)), &piece);
  EXPECT_EQ(piece.home.buffer, a.get());
  EXPECT_EQ(piece.home.region.offset, 10u);
  EXPECT_EQ(piece.home.region.extent[0], 20u);
  EXPECT_EQ(piece.bytes(), 20u);
  EXPECT_TRUE(piece.at_home());
  EXPECT_FALSE(piece.valid_in(1));
}

TEST(Pieces, PeersShareAByteAndKnowEachOther) {
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

TEST(Pieces, ColumnsOfAMatrixAreNoPeers) {
  PieceTable table;
  const auto buffer = make_buffer(1, 100);
  Piece& first = table.find(*buffer, rows(0, 2, 10, 10));
  Piece& second = table.find(*buffer, rows(2, 2, 10, 10));
  Piece& row = table.find(*buffer, range(50, 10));
  EXPECT_EQ(peers_of(first), (std::set<const Piece*>{&row}));
  EXPECT_EQ(peers_of(second), (std::set<const Piece*>{&row}));
}

TEST(Pieces, SearchFindsExactlyWhatOverlaps) {
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

TEST(Pieces, ForgottenBuffersHaveNone) {
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

std::string expected_of(const Piece& piece) {
  std::string text;
  const ExpectedUse* last = nullptr;
  for (const ExpectedUse* use = piece.expected; use != nullptr; use = use->next) {
    text += std::to_string(use->sequence);
    last = use;
  }
  EXPECT_EQ(piece.expected_last, last);
  return text;
}

TEST(Pieces, ExpectedUsesLeaveInAnyOrder) {
  Piece piece;
  std::vector<ExpectedUse> uses = {{1, nullptr}, {2, nullptr}, {3, nullptr}, {4, nullptr}};
  for (ExpectedUse& use : uses) piece.expect(use);
  EXPECT_EQ(expected_of(piece), "1234");
  piece.unexpect(uses[1]);
  EXPECT_EQ(expected_of(piece), "134");
  piece.unexpect(uses[3]);
  EXPECT_EQ(expected_of(piece), "13");
  piece.expect(uses[3]);
  EXPECT_EQ(expected_of(piece), "134");
  piece.unexpect(uses[0]);
  EXPECT_EQ(expected_of(piece), "34");
  piece.unexpect(uses[2]);
  piece.unexpect(uses[3]);
  EXPECT_EQ(expected_of(piece), "");
  piece.expect(uses[0]);
  EXPECT_EQ(expected_of(piece), "1");
}

TEST(Pieces, OneTaskMayUseAPieceTwice) {
  Piece piece;
  std::vector<ExpectedUse> uses = {{5, nullptr}, {5, nullptr}};
  for (ExpectedUse& use : uses) piece.expect(use);
  EXPECT_EQ(expected_of(piece), "55");
  piece.unexpect(uses[1]);
  piece.unexpect(uses[0]);
  EXPECT_EQ(expected_of(piece), "");
}

}  // namespace
}  // namespace weir::rt
