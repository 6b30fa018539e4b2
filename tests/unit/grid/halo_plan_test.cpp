#include "grid/halo_plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>

#include "grid/halo_check.hpp"
#include "random_grid.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

/// The memories and plans of all ranks, whose messages go from hand to hand.
class Ranks {
 public:
  explicit Ranks(const RandomGrid& random) : random_(random) {
    for (Rank rank = 0; rank < random.grid.ranks; ++rank) {
      memories_.emplace_back(random, rank);
      arrays_.push_back(std::make_unique<BlockArrays>(
          random.grid, random.shape, rank, memories_.back().fields(), memories_.back().arrays()));
      plans_.push_back(make_halo_plan(random.grid, make_transfers(random.grid, random.shape, rank),
                                      rank, *arrays_.back()));
    }
  }

  RankMemory& memory(Rank rank) { return memories_[rank]; }
  HaloPlan& plan(Rank rank) { return plans_[rank]; }

  void exchange() {
    for (Rank rank = 0; rank < plans_.size(); ++rank) {
      for (const HaloPlan::Copy& each : plans_[rank].copies) copy(each.from.memory, each.to.memory);
      for (const HaloPlan::Peer& peer : plans_[rank].peers) {
        std::vector<std::byte> message(peer.send_bytes);
        std::byte* at = message.data();
        for (const HaloPlan::Part& part : peer.sends) {
          pack(part.memory, at);
          at += part.memory.bytes();
        }
        RC_ASSERT(at == message.data() + message.size());
        receive(rank, peer.rank, message);
      }
    }
  }

  /// The same with tags. Returns the first complaint.
  std::string exchange_checked(std::uint64_t step) {
    for (Rank rank = 0; rank < plans_.size(); ++rank) {
      const HaloCheck mine(random_.grid, *arrays_[rank], plans_[rank]);
      std::vector<std::byte> message;
      const auto move = [&](const HaloPlan::Part& from, Rank to, const HaloPlan::Part& part) {
        const HaloCheck theirs(random_.grid, *arrays_[to], plans_[to]);
        message.resize(mine.bytes(from));
        mine.pack(from, step, message.data());
        return theirs.unpack(message.data(), part, step);
      };
      for (const HaloPlan::Copy& each : plans_[rank].copies) {
        if (std::string wrong = move(each.from, rank, each.to); !wrong.empty()) return wrong;
      }
      for (const HaloPlan::Peer& peer : plans_[rank].peers) {
        for (std::size_t i = 0; i < peer.sends.size(); ++i) {
          const HaloPlan::Part& part = peer_of(peer.rank, rank).receives[i];
          if (std::string wrong = move(peer.sends[i], peer.rank, part); !wrong.empty())
            return wrong;
        }
      }
    }
    return "";
  }

 private:
  const HaloPlan::Peer& peer_of(Rank rank, Rank other) const {
    for (const HaloPlan::Peer& peer : plans_[rank].peers) {
      if (peer.rank == other) return peer;
    }
    RC_FAIL("a message from nowhere");
    return plans_[rank].peers.front();
  }

  void receive(Rank from, Rank to, const std::vector<std::byte>& message) {
    const HaloPlan::Peer& peer = peer_of(to, from);
    RC_ASSERT(peer.receive_bytes == message.size());
    const std::byte* at = message.data();
    for (const HaloPlan::Part& part : peer.receives) {
      unpack(at, part.memory);
      at += part.memory.bytes();
    }
  }

  const RandomGrid& random_;
  std::vector<RankMemory> memories_;
  std::vector<std::unique_ptr<BlockArrays>> arrays_;
  std::vector<HaloPlan> plans_;
};

RC_GTEST_PROP(HaloPlan, FillsEachCellFromItsOwner, ()) {
  const RandomGrid random = random_grid(*rc::gen::inRange(1u, 5u));
  Ranks ranks(random);
  for (Rank rank = 0; rank < random.grid.ranks; ++rank) ranks.memory(rank).fill(7);
  ranks.exchange();
  for (Rank rank = 0; rank < random.grid.ranks; ++rank) {
    const auto wrong = ranks.memory(rank).wrong(7);
    RC_ASSERT(wrong.value_or("") == "");
  }
}

RC_GTEST_PROP(HaloPlan, PassesTheCheck, ()) {
  const RandomGrid random = random_grid(*rc::gen::inRange(1u, 5u));
  Ranks ranks(random);
  for (Rank rank = 0; rank < random.grid.ranks; ++rank) ranks.memory(rank).fill(3);
  RC_ASSERT(ranks.exchange_checked(3) == "");
  for (Rank rank = 0; rank < random.grid.ranks; ++rank) {
    RC_ASSERT(ranks.memory(rank).wrong(3).value_or("") == "");
  }
}

/// Two blocks of 4 x 4 cells beside each other, each on a rank of its own.
RandomGrid two_blocks() {
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = 2;
  options.ranks = 2;
  options.cells[0] = 8;
  options.cells[1] = 4;
  options.blocks[0] = 2;
  return {make_partition(options), {{1, 1, 0}, false}, {8}};
}

TEST(HaloCheck, WrongSendOffset_IsReportedWithBothCells) {
  const RandomGrid random = two_blocks();
  Ranks ranks(random);
  HaloPlan::Part& part = ranks.plan(0).peers.front().sends.front();
  part.memory.first += part.memory.row;  // one row too low
  EXPECT_EQ(ranks.exchange_checked(5),
            "cell (3, 1) of block 0 on rank 0, field 0, step 5, sent to (3, 1) of block 1 on rank "
            "1, lands at (3, 0) of block 1 on rank 1, field 0, step 5");
}

TEST(HaloCheck, SentCellOutsideItsBlock_IsReported) {
  const RandomGrid random = two_blocks();
  Ranks ranks(random);
  HaloPlan::Part& part = ranks.plan(0).peers.front().sends.front();
  part.memory.first -= part.memory.row;
  EXPECT_EQ(ranks.exchange_checked(5),
            "cell (3, -1) of block 0 on rank 0, field 0, step 5, sent to (3, -1) of block 1 on "
            "rank 1, lands at (3, 0) of block 1 on rank 1, field 0, step 5; block 0 does not own "
            "it");
}

TEST(HaloCheck, WrongReceiveOffset_IsReported) {
  const RandomGrid random = two_blocks();
  Ranks ranks(random);
  HaloPlan::Part& part = ranks.plan(1).peers.front().receives.front();
  part.memory.first += 8;
  EXPECT_EQ(ranks.exchange_checked(0),
            "cell (3, 0) of block 0 on rank 0, field 0, step 0, sent to (3, 0) of block 1 on rank "
            "1, lands at (4, 0) of block 1 on rank 1, field 0, step 0");
}

TEST(HaloPlan, HaloWiderThanABlock_IsRefused) {
  const RandomGrid random = two_blocks();
  weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
  options.width[0] = 5;
  EXPECT_EQ(thrown_by<Error>([&] { make_halo_shape(random.grid, options); }),
            "a halo of 5 cells in x is wider than block 0, which has 4: choose larger blocks "
            "or a narrower halo");
}

TEST(HaloPlan, RefusesTransfersOutsideOfBlocks) {
  const RandomGrid random = two_blocks();
  const auto failure = [&](const weir_halo_transfer& transfer) {
    return thrown_by<Error>([&] { read_transfers(random.grid, random.shape, {&transfer, 1}, 0); });
  };
  const GridRange edge{{3, 0, 0}, {4, 4, 0}};
  EXPECT_EQ(failure({0, 1, edge, {3, 0, 0}}), "");
  EXPECT_EQ(failure({0, 2, edge, {3, 0, 0}}), "transfer 0 is from block 0 to block 2: there are 2");
  EXPECT_EQ(failure({1, 0, edge, {3, 0, 0}}),
            "transfer 0 takes [3, 4) x [0, 4) from block 1, which has [4, 8) x [0, 4)");
  EXPECT_EQ(failure({0, 1, edge, {2, 0, 0}}),
            "transfer 0 goes to [2, 3) x [0, 4) of block 1, which has [3, 9) x [-1, 5) with its "
            "halo");
  EXPECT_EQ(failure({0, 1, edge, {INT64_MIN, 0, 0}}),
            "transfer 0 goes to cell -9223372036854775808 in x: that is not in a halo");
  EXPECT_EQ(failure({0, 1, {{INT64_MIN, 0, 0}, {INT64_MAX, 4, 0}}, {3, 0, 0}}),
            "transfer 0 takes [-9223372036854775808, 9223372036854775807) x [0, 4) from block 0, "
            "which has [0, 4) x [0, 4)");
}

TEST(HaloPlan, ArraysThatDoNotFitTheBlocks_AreRefused) {
  const RandomGrid random = two_blocks();
  double memory[36] = {};
  const auto failure = [&](weir_halo_field field, std::vector<weir_grid_array> arrays) {
    return thrown_by<Error>([&] {
      BlockArrays(random.grid, random.shape, 0, {&field, 1}, arrays);
    });
  };
  EXPECT_EQ(failure({8, nullptr}, {{memory + 7, 48, 0}}), "");
  EXPECT_EQ(failure({8, nullptr}, {}), "0 arrays for 1 fields of 1 blocks on rank 0: give 1");
  EXPECT_EQ(failure({8, nullptr}, {{nullptr, 48, 0}}), "field 0 of block 0 is NULL");
  EXPECT_EQ(failure({8, nullptr}, {{memory + 7, 40, 0}}),
            "field 0 of block 0 has rows 40 bytes apart, which are 48 long with halos");
  EXPECT_EQ(failure({0, nullptr}, {{memory + 7, 48, 0}}),
            "field 0 has elements of 0 bytes: give them from 1 to 1048576");
}

}  // namespace
}  // namespace weir::rt
