#include "grid/halo.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>

#include "random_grid.hpp"
#include "ranks.hpp"
#include "reserving_link.hpp"

namespace weir::rt {
namespace {

using test::on_ranks;

constexpr std::int64_t kTimeout = 60'000'000'000;

weir_halo_options options_of(const RandomGrid& random, const RankMemory& memory) {
  weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
  for (std::size_t d = 0; d < 3; ++d) {
    options.width[d] = static_cast<std::size_t>(random.shape.width[d]);
  }
  options.corners = random.shape.corners;
  options.fields = memory.fields().data();
  options.field_count = memory.fields().size();
  options.arrays = memory.arrays().data();
  options.array_count = memory.arrays().size();
  options.timeout_ns = kTimeout;
  return options;
}

/// What happened to the ranks, by rank.
class Failures {
 public:
  explicit Failures(Rank ranks) : messages_(ranks) {}

  template <class Program>
  void note(Rank rank, const Program& program) {
    try {
      program();
    } catch (const std::exception& error) {
      std::lock_guard lock(mutex_);
      if (messages_[rank].empty()) messages_[rank] = error.what();
    }
  }
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

/// How ranks reach each other: by packets that are copied, or made where they travel from, as far
/// as there is room, in an order of the seed, or by memory that they share.
enum class Way { copied, reserved, shared };

void on_ranks_by(Way way, Rank ranks, std::uint64_t seed, ProgressBy progress,
                 const std::function<void(Port&)>& program) {
  if (way == Way::shared) return test::on_sharing_ranks(ranks, progress, program);
  InprocHub hub(ranks, seed);
  std::atomic<int> reserved{0};
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < ranks; ++rank) {
    links.push_back(hub.link(rank));
    if (way == Way::reserved) {
      links.back() = std::make_unique<test::ReservingLink>(std::move(links.back()), reserved, 3);
    }
  }
  test::on_links(std::move(links), progress, program, test::membership());
  EXPECT_EQ(reserved, 0) << "memory of a link is not given back";
}

/// A step for whose end a rank waits in its own way.
class AwaitedStep final : public Halo::Step {
 public:
  void done(const Outcome& outcome) noexcept override {
    outcome_ = outcome;
    EXPECT_FALSE(over_.exchange(true));
  }
  void await(Port& port) {
    const bool over = port.wait_until([&] { return over_.load(); }, kTimeout, "a step");
    if (!over) fail(WEIR_STATUS_TIMEOUT, "the step does not end");
    if (!outcome_.ok()) throw Error(outcome_.status, outcome_.message);
  }

 private:
  Outcome outcome_;
  std::atomic<bool> over_{false};
};

/// Exchanges the halos of a random grid for some steps on ranks of their own, half of them with a
/// thread that waits.
std::vector<std::string> exchange(const RandomGrid& random, Way way, std::uint64_t seed,
                                  ProgressBy progress, std::uint64_t steps, bool check) {
  Failures failures(random.grid.ranks);
  const auto program = [&](Port& port) {
    failures.note(port.rank(), [&] {
      GroupHub halos(port, Channel::grid);
      RankMemory memory(random, port.rank());
      weir_halo_options options = options_of(random, memory);
      options.check = check;
      Halo halo(halos, [&] { return HaloRequest{&random.grid, options}; });
      for (std::uint64_t step = 0; step < steps; ++step) {
        memory.fill(step);
        const bool waits = (seed + port.rank() + step) % 2 == 0;
        AwaitedStep awaited;
        waits ? halo.start() : halo.exchange(awaited);
        memory.spoil();  // the blocks are free
        waits ? halo.finish(kTimeout) : awaited.await(port);
        memory.restore(step);
        if (const auto wrong = memory.wrong(step)) {
          fail(WEIR_STATUS_INTERNAL, "step {}: {}", step, *wrong);
        }
      }
      if (halo.info().steps != steps) fail(WEIR_STATUS_INTERNAL, "steps are not counted");
    });
  };
  on_ranks_by(way, random.grid.ranks, seed, progress, program);
  return failures.messages();
}

RC_GTEST_PROP(Halo, FillsHalosOverAnyRanks, ()) {
  const auto ranks = *rc::gen::inRange(1u, 9u);
  const RandomGrid random = random_grid(ranks);
  const auto way = *rc::gen::element(Way::copied, Way::reserved, Way::shared);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto progress =
      *rc::gen::element(ProgressBy::thread, ProgressBy::caller, ProgressBy::hybrid);
  const std::vector<std::string> found =
      exchange(random, way, seed, progress, 4, *rc::gen::arbitrary<bool>());
  for (const std::string& message : found) {
    if (!message.empty()) ADD_FAILURE() << message;  // the next run may be another
  }
  RC_ASSERT(found == std::vector<std::string>(ranks));
}

/// Four blocks in a row, each on a rank of its own.
RandomGrid four_blocks(std::size_t width = 1) {
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = 2;
  options.ranks = 4;
  options.cells[0] = 16;
  options.cells[1] = 4;
  options.blocks[0] = 4;
  return {make_partition(options), {{static_cast<std::int64_t>(width), 1, 0}, false}, {8}};
}

/// Calls program(port, halo) with a halo on each rank, which the program may destroy.
template <class Program>
void with_halos(const RandomGrid& random, std::uint64_t seed, ProgressBy progress,
                const Program& program) {
  InprocHub hub(random.grid.ranks, seed);
  on_ranks(hub, random.grid.ranks, progress, [&](Port& port) {
    GroupHub halos(port, Channel::grid);
    RankMemory memory(random, port.rank());
    std::optional<Halo> halo;
    halo.emplace(halos, [&] { return HaloRequest{&random.grid, options_of(random, memory)}; });
    program(port, halo);
  });
}

/// Makes a halo on each rank, which `spoil(rank, request)` changes before, and takes steps.
template <class Spoil>
std::vector<std::string> make_and_step(const RandomGrid& random, const Spoil& spoil) {
  constexpr int kSteps = 20;
  Failures failures(random.grid.ranks);
  InprocHub hub(random.grid.ranks, 7);
  on_ranks(hub, random.grid.ranks, ProgressBy::hybrid, [&](Port& port) {
    GroupHub halos(port, Channel::grid);
    RankMemory memory(random, port.rank());
    std::optional<Halo> halo;
    failures.note(port.rank(), [&] {
      halo.emplace(halos, [&] {
        HaloRequest request{&random.grid, options_of(random, memory)};
        spoil(port.rank(), request);
        return request;
      });
      memory.fill(0);
      for (int step = 0; step < kSteps; ++step) {
        halo->start();
        halo->finish(kTimeout);
      }
    });
    EXPECT_TRUE(port.barrier(kTimeout).ok());  // no rank fails because another has left
  });
  return failures.messages();
}

TEST(Halo, FieldTypeDiffersOnOneRank_CreationFailsOnAllRanks) {
  const RandomGrid random = four_blocks();
  static constexpr weir_halo_field kFloat = {8, "float pair"}, kDouble = {8, "double"};
  const auto found = make_and_step(random, [](Rank rank, HaloRequest& request) {
    request.options.fields = rank == 2 ? &kFloat : &kDouble;
  });
  for (const Rank rank : {0u, 1u, 3u}) {
    EXPECT_EQ(found[rank],
              fmt::format("rank 2 has a field 0 of 8 bytes an element, float pair, rank {} has a "
                          "field 0 of 8 bytes an element, double: make the same halo on all ranks",
                          rank));
  }
  EXPECT_EQ(found[2].substr(0, 42), "rank 0 has a field 0 of 8 bytes an element");
}

TEST(Halo, GridDiffersOnOneRank_CreationFailsOnAllRanks) {
  const RandomGrid random = four_blocks();
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = 2;
  options.ranks = 4;
  options.cells[0] = 16;
  options.cells[1] = 5;
  options.blocks[0] = 4;
  const Partition other = make_partition(options);
  const auto found = make_and_step(random, [&](Rank rank, HaloRequest& request) {
    if (rank == 3) request.grid = &other;
  });
  for (const Rank rank : {0u, 1u, 2u}) {
    EXPECT_EQ(
        found[rank],
        fmt::format("rank 3 has a grid of 16 x 5 cells in 2 dimensions, rank {} has a grid of "
                    "16 x 4 cells in 2 dimensions: make the same halo on all ranks",
                    rank));
  }
  EXPECT_NE(found[3], "");
}

TEST(Halo, InvalidWidthOnOneRank_CreationFailsOnAllRanks) {
  const RandomGrid random = four_blocks();
  const auto found = make_and_step(random, [](Rank rank, HaloRequest& request) {
    if (rank == 1) request.options.width[0] = 5;
  });
  const std::string why =
      "a halo of 5 cells in x is wider than block 0, which has 4: choose larger blocks or a "
      "narrower halo";
  EXPECT_EQ(found,
            (std::vector<std::string>{"rank 1: " + why, why, "rank 1: " + why, "rank 1: " + why}));
}

TEST(Halo, GridForMoreRanksThanTheFabric_IsRefused) {
  const RandomGrid random = four_blocks();
  Failures failures(1);
  InprocHub hub(1, 0);
  on_ranks(hub, 1, ProgressBy::caller, [&](Port& port) {
    GroupHub halos(port, Channel::grid);
    failures.note(0, [&] {
      Halo(halos, [&] { return HaloRequest{&random.grid, WEIR_HALO_OPTIONS_INIT}; });
    });
  });
  EXPECT_EQ(failures.messages()[0], "the grid is for 4 ranks: the fabric has 1");
}

/// Rank 0 has received all that it needed; each neighbour notifies the next one.
void expect_that_rank_0_left(const Failures& failures) {
  const auto& found = failures.messages();
  EXPECT_EQ(found[0], "");
  EXPECT_EQ(found[1], "rank 0 has destroyed its halo");
  EXPECT_EQ(found[2], "rank 1 cannot go on with its halo: rank 0 has destroyed its halo");
  EXPECT_EQ(found[3], "rank 2 cannot go on with its halo: rank 0 has destroyed its halo");
}

TEST(Halo, RankDestroysItsHalo_DependentRanksFail) {
  const RandomGrid random = four_blocks();
  Failures failures(4);
  with_halos(random, 3, ProgressBy::hybrid, [&](Port& port, std::optional<Halo>& halo) {
    failures.note(port.rank(), [&] {
      for (int step = 0; step < (port.rank() == 0 ? 3 : 50); ++step) {
        halo->start();
        halo->finish(kTimeout);
      }
    });
    halo.reset();
    EXPECT_TRUE(port.barrier(kTimeout).ok());  // they leave the halo, not the fabric
  });
  expect_that_rank_0_left(failures);
}

TEST(Halo, RankDestroysItsHalo_RanksThatKeepTheirsFailToo) {
  const RandomGrid random = four_blocks();
  Failures failures(4);
  with_halos(random, 3, ProgressBy::hybrid, [&](Port& port, std::optional<Halo>& halo) {
    failures.note(port.rank(), [&] {
      for (int step = 0; step < 50; ++step) {
        if (port.rank() == 0 && step == 3) return halo.reset();
        halo->start();
        halo->finish(kTimeout);
      }
    });
    EXPECT_TRUE(port.barrier(kTimeout).ok());  // all except rank 0 keep their halos until then
  });
  expect_that_rank_0_left(failures);
}

TEST(Halo, StartFailsAfterANeighbourLeft_FinishReportsTheLoss) {
  const RandomGrid random = four_blocks();
  Failures failures(4);
  with_halos(random, 3, ProgressBy::hybrid, [&](Port& port, std::optional<Halo>& halo) {
    const Rank rank = port.rank();
    if (rank != 1) halo->start();
    EXPECT_TRUE(port.barrier(kTimeout).ok());
    if (rank == 2) return;  // it has sent its cells, and needs those of rank 1
    EXPECT_TRUE(port.wait_until([&] { return !port.alive(2); }, kTimeout, "the end of rank 2"));
    if (rank == 1) {
      EXPECT_THROW(halo->start(), Error);
      failures.note(1, [&] { halo->finish(0); });
    }
    EXPECT_TRUE(port.barrier(kTimeout).ok());
  });
  EXPECT_NE(failures.messages()[1].find("rank 2 has left"), std::string::npos)
      << failures.messages()[1];
}

/// Inside a handler no thread waits for room: the step of rank 0 begins with what there was room
/// for.
TEST(Halo, StartFailsForLackOfSendRoom_NeighbourFailsToo) {
  constexpr std::size_t kMuch = 66u << 20;
  const RandomGrid random = four_blocks();
  Failures failures(4);
  std::latch tried(1);
  InprocHub network(4, 3);
  on_ranks(network, 4, ProgressBy::caller, [&](Port& port) {
    GroupHub halos(port, Channel::grid);
    const std::uint32_t unused = halos.skip();
    RankMemory memory(random, port.rank());
    Halo halo(halos, [&] { return HaloRequest{&random.grid, options_of(random, memory)}; });
    if (port.rank() != 0) tried.wait();  // and take nothing in meanwhile
    failures.note(port.rank(), [&] {
      if (port.rank() == 0) {
        const std::vector<std::byte> much(kMuch);
        const Port::ListenerScope scope(port);
        halos.send(1, unused, 0, 0, much);
        halo.start();
      } else {
        halo.start();
        halo.finish(kTimeout);
      }
    });
    if (port.rank() == 0) tried.count_down();
    EXPECT_TRUE(port.barrier(kTimeout).ok());
  });
  const auto& found = failures.messages();
  EXPECT_NE(found[0].find("send less in handlers"), std::string::npos) << found[0];
  EXPECT_EQ(found[1], "rank 0 cannot go on with its halo: " + found[0]);
}

TEST(Halo, FinishBeforeStartOrSecondStart_Fails) {
  const RandomGrid random = four_blocks();
  Failures failures(4);
  with_halos(random, 3, ProgressBy::hybrid, [&](Port& port, std::optional<Halo>& halo) {
    failures.note(port.rank(), [&] { halo->finish(0); });
    halo->start();
    EXPECT_THROW(halo->start(), Error);
    halo->finish(kTimeout);
    EXPECT_TRUE(port.barrier(kTimeout).ok());
  });
  for (const std::string& message : failures.messages()) {
    EXPECT_EQ(message, "no step of the halo has been started: call weir_halo_start() first");
  }
}

TEST(Halo, NeighbourHasNotStarted_FinishTimesOut) {
  const RandomGrid random = four_blocks();
  Failures failures(4);
  with_halos(random, 0, ProgressBy::hybrid, [&](Port& port, std::optional<Halo>& halo) {
    if (port.rank() != 3) halo->start();
    if (port.rank() == 2) failures.note(2, [&] { halo->finish(1); });
    EXPECT_TRUE(port.barrier(kTimeout).ok());
    if (port.rank() == 3) halo->start();
    halo->finish(kTimeout);
    EXPECT_TRUE(port.barrier(kTimeout).ok());
  });
  EXPECT_TRUE(failures.messages()[2].ends_with("neighbours' cells of step 0 have not come"))
      << failures.messages()[2];
}

TEST(Halo, WrongTransferWithCheck_FailsOnAllRanks) {
  const RandomGrid random = four_blocks();
  // From each block's right edge to its neighbour's left halo, but one cell too low at block 2.
  std::vector<weir_halo_transfer> transfers;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto end = static_cast<std::int64_t>(4 * i + 4);
    transfers.push_back({i, i + 1, {{end - 1, 0, 0}, {end, 3, 1}}, {end - 1, i == 1 ? 1 : 0, 0}});
    transfers.push_back({i + 1, i, {{end, 0, 0}, {end + 1, 4, 1}}, {end, 0, 0}});
  }
  const auto found = make_and_step(random, [&](Rank, HaloRequest& request) {
    request.options.transfers = transfers.data();
    request.options.transfer_count = transfers.size();
    request.options.check = true;
  });
  const std::string why =
      "cell (7, 0) of block 1 on rank 1, field 0, step 0, sent to (7, 1) of block 2 on rank 2, "
      "lands at (7, 1) of block 2 on rank 2, field 0, step 0";
  const std::string reported = "rank 2: " + why;
  EXPECT_EQ(found, (std::vector<std::string>{reported, reported, why, reported}));
}

/// Where the program keeps the cells of a rank that has one block with one field.
struct Kept {
  GridBlock block;
  weir_grid_array array;
  std::size_t element_bytes;

  static const void* locate(std::size_t, std::size_t, const std::int64_t* cell, void* kept) {
    const auto& [block, array, element_bytes] = *static_cast<const Kept*>(kept);
    return static_cast<const std::byte*>(array.first) +
           (cell[0] - block.cells.begin[0]) * static_cast<std::ptrdiff_t>(element_bytes) +
           (cell[1] - block.cells.begin[1]) * static_cast<std::ptrdiff_t>(array.row);
  }
};

/// What the ranks hear when rank 2 says of its array that it begins so many rows and cells later.
std::vector<std::string> with_an_array_off_by(std::ptrdiff_t rows, std::ptrdiff_t cells) {
  const RandomGrid random = four_blocks();
  std::vector<Kept> kept(4);
  std::vector<weir_grid_array> said(4);
  return make_and_step(random, [&](Rank rank, HaloRequest& request) {
    kept[rank] = {random.grid.blocks[rank], request.options.arrays[0], random.element_bytes[0]};
    said[rank] = kept[rank].array;
    if (rank == 2) {
      said[rank].first = static_cast<std::byte*>(said[rank].first) +
                         rows * static_cast<std::ptrdiff_t>(said[rank].row) +
                         cells * static_cast<std::ptrdiff_t>(random.element_bytes[0]);
    }
    request.options.arrays = &said[rank];
    request.options.check = true;
    request.options.locate = Kept::locate;
    request.options.payload = &kept[rank];
  });
}

TEST(Halo, WrongArrayOriginWithCheck_FailsOnAllRanks) {
  EXPECT_EQ(with_an_array_off_by(0, 0), std::vector<std::string>(4));
  const struct {
    std::ptrdiff_t rows, cells;
    const char* found;
  } offs[] = {{1, 0, "(8, 1): the program keeps them 54 bytes apart"},
              {-1, 0, "(8, -1): the program keeps them 54 bytes apart"},
              {0, 1, "(9, 0): the program keeps them 8 bytes apart"},
              {1, -1, "(7, 1): the program keeps them 46 bytes apart"},
              {0, 4, "(12, 0): the program keeps them 32 bytes apart"}};
  for (const auto& [rows, cells, found] : offs) {
    const std::string why = fmt::format(
        "block 2 on rank 2, field 0: expected cell (8, 0), found {}; look at first, row and plane "
        "of "
        "the array",
        found);
    const std::string reported = "rank 2: " + why;
    EXPECT_EQ(with_an_array_off_by(rows, cells),
              (std::vector<std::string>{reported, reported, why, reported}));
  }
}

TEST(Halo, OneWayTransfers_AllRanksCompleteTheirSteps) {
  const RandomGrid random = four_blocks();
  std::vector<weir_halo_transfer> transfers;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto end = static_cast<std::int64_t>(4 * i + 4);
    transfers.push_back({i, i + 1, {{end - 1, 0, 0}, {end, 4, 1}}, {end - 1, 0, 0}});
  }
  const auto found = make_and_step(random, [&](Rank, HaloRequest& request) {
    request.options.transfers = transfers.data();
    request.options.transfer_count = transfers.size();
  });
  EXPECT_EQ(found, std::vector<std::string>(4));
}

/// A block for each of two ranks of 8 x 8 cells that are cut in x or y.
RandomGrid two_blocks(std::size_t cut, std::size_t element_bytes) {
  weir_grid_options given = WEIR_GRID_OPTIONS_INIT;
  given.dimensions = 2;
  given.ranks = 2;
  given.cells[0] = 8;
  given.cells[1] = 8;
  given.blocks[cut] = 2;
  given.blocks[1 - cut] = 1;
  return {make_partition(given), {{1, 1, 0}, false}, {element_bytes}};
}

TEST(Halo, LargeFacesTravelInSeveralMessages) {
  constexpr std::size_t kElement = HaloPlan::kMessageBytes / 3;
  for (const std::size_t cut : {0u, 1u}) {
    const RandomGrid random = two_blocks(cut, kElement);
    for (const ProgressBy progress : {ProgressBy::thread, ProgressBy::caller, ProgressBy::hybrid}) {
      for (const bool check : {false, true}) {
        for (const Way way : {Way::copied, Way::reserved}) {
          EXPECT_EQ(exchange(random, way, 7, progress, 5, check), std::vector<std::string>(2));
        }
      }
    }
    RankMemory memory(random, 0);
    const BlockArrays arrays(random.grid, random.shape, 0, memory.fields(), memory.arrays());
    const HaloPlan plan =
        make_halo_plan(random.grid, make_transfers(random.grid, random.shape, 0), 0, arrays);
    EXPECT_EQ(plan.peers[0].outgoing.size(), cut == 0 ? 3u : 1u);  // of one row, as it is
    EXPECT_EQ(plan.peers[0].incoming.size(), cut == 0 ? 3u : 1u);
  }
}

TEST(Halo, LargeFacesThatWrapTheSharedRing_ArriveIntact) {
  constexpr std::size_t kElement = ShmRing::kBytes / 12;
  for (const std::size_t cut : {0u, 1u}) {
    for (const ProgressBy progress : {ProgressBy::thread, ProgressBy::caller, ProgressBy::hybrid}) {
      EXPECT_EQ(exchange(two_blocks(cut, kElement), Way::shared, 7, progress, 5, false),
                std::vector<std::string>(2));
    }
  }
}

TEST(Halo, ContiguousFaces_AreSentWithoutPacking) {
  for (const std::size_t cut : {0u, 1u}) {
    const RandomGrid random = two_blocks(cut, 8);
    with_halos(random, 0, ProgressBy::hybrid, [&](Port&, std::optional<Halo>& halo) {
      EXPECT_EQ(halo->info().neighbours, 1u);
      EXPECT_EQ(halo->info().bytes_sent, 64u);
      EXPECT_EQ(halo->info().bytes_packed, cut == 0 ? 64u : 0u);
      EXPECT_EQ(halo->info().bytes_copied, 0u);
    });
  }
}

}  // namespace
}  // namespace weir::rt
