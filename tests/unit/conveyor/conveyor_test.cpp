#include "conveyor/conveyor.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include <unistd.h>

#include "base/threads.hpp"
#include "conveyor/producer.hpp"
#include "fabric/shm/node_link.hpp"
#include "fabric/shm/segment.hpp"
#include "fabric/shm/shm_link.hpp"
#include "fabric/transport.hpp"
#include "fabric/wire.hpp"
#include "no_memory.hpp"
#include "ranks.hpp"
#include "reserving_link.hpp"
#include "runtime/conveyor.hpp"
#include "runtime/fabric.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;

/// Runs a program on ranks of this process and returns what went wrong.
std::string on_ranks(Rank ranks, std::uint64_t seed,
                     const std::function<void(weir_fabric&)>& program,
                     const char* progress = nullptr) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.seed = seed;
  options.progress = progress;
  return thrown_by<Error>([&] { simulate_fabric(options, ranks, program); });
}

/// The same on ranks that have these links.
std::string on_links(Rank ranks, const std::function<std::unique_ptr<Link>(Rank)>& link_of,
                     const std::function<void(weir_fabric&)>& program, ProgressBy progress) {
  std::vector<std::string> wrong(ranks);
  {
    std::vector<sys::Thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads.emplace_back("rank", [&, rank] {
        try {
          auto link = link_of(rank);
          Membership membership = test::membership(kMinute);
          membership.sends_heartbeats = progress != ProgressBy::caller;
          const Owned<weir_fabric> fabric(new weir_fabric(
              std::make_unique<Transport>(std::move(link), std::move(membership)), progress));
          program(*fabric);
        } catch (const Error& error) {
          wrong[rank] = fmt::format("rank {}: {}", rank, error.what());
        }
      });
    }
  }
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}

/// The same on ranks that share memory as processes do, each of which has it elsewhere.
std::string on_sharing_ranks(Rank ranks, const std::function<void(weir_fabric&)>& program,
                             ProgressBy progress) {
  const Segment segment(ranks);
  return on_links(
      ranks,
      [&](Rank rank) {
        return std::make_unique<ShmLink>(Segment::attach(dup(segment.descriptor()), ranks), rank);
      },
      program, progress);
}

/// The same on ranks whose links have memory for packets, most of the time; those of a node share
/// memory.
std::string on_reserving_ranks(Rank ranks, std::uint64_t seed, Rank node_size,
                               const std::function<void(weir_fabric&)>& program,
                               ProgressBy progress) {
  InprocHub hub(ranks, seed);
  std::atomic<int> out{0};
  std::string wrong = on_links(
      ranks,
      [&](Rank rank) -> std::unique_ptr<Link> {
        auto link = std::make_unique<test::ReservingLink>(hub.link(rank), out,
                                                          static_cast<unsigned>(seed % 5));
        if (node_size < 2) return link;
        Node node = find_node(*link, node_size, kMinute);
        return std::make_unique<NodeLink>(std::move(link), std::move(node));
      },
      program, progress);
  return wrong.empty() && out != 0 ? fmt::format("memory of {} packets is missing", out.load())
                                   : wrong;
}

/// A word that only these three numbers have.
std::uint64_t word_of(std::uint64_t rank, std::uint64_t producer, std::uint64_t step) {
  return (rank << 48) + (producer << 40) + step + 1;
}

// ---- Random programs ----------------------------------------------------------------------------

struct Record {
  std::uint64_t source;  ///< rank << 8 | producer
  std::uint64_t step;
};

/// Ranks with several producers each. Words of a rank's memory belong to one producer, which puts
/// to them in an order that matters; the last ones to all, which add. What a sequential execution
/// leaves there must be there after finish().
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : seed_(seed) {
    std::mt19937_64 random(seed);
    ranks_ = 1 + static_cast<Rank>(random() % 4);
    producers_ = 1 + random() % 3;
    epochs_ = 1 + random() % 2;
    words_ = std::size_t{8} << random() % 4;
    setup_.block_bytes = std::size_t{1024} << random() % 3;
    setup_.block_items = random() % 4 == 0 ? 1 + random() % 5 : 0;
    setup_.blocks_in_flight = 1 + random() % 4;
    if (random() % 3 == 0) setup_.age_ns = static_cast<std::int64_t>(random() % 50'000);
    mixed_ = random() % 2 == 0;
    progress_ = static_cast<ProgressBy>(random() % 3);
    steps_ = 1 + random() % 120;
  }

  /// What carries the messages of the ranks.
  enum class Links { plain, sharing, reserving, nodes };

  std::string run(Links links) {
    for (Rank rank = 0; rank < ranks_; ++rank) wanted_.emplace_back(bytes());
    for (Rank rank = 0; rank < ranks_; ++rank) {
      for (std::size_t producer = 0; producer < producers_; ++producer) execute(rank, producer);
    }
    const auto program = [this](weir_fabric& fabric) { rank_program(fabric); };
    switch (links) {
      case Links::sharing: return on_sharing_ranks(ranks_, program, progress_);
      case Links::reserving: return on_reserving_ranks(ranks_, seed_, 1, program, progress_);
      case Links::nodes: return on_reserving_ranks(ranks_, seed_, 2, program, progress_);
      default:
        return on_ranks(ranks_, seed_, program, kProgress[static_cast<std::size_t>(progress_)]);
    }
  }

 private:
  static constexpr std::size_t kSharedWords = 16;
  static constexpr const char* kProgress[] = {"thread", "caller", "hybrid"};

  /// One step of a producer, drawn from its own numbers: the same when executed and when run.
  struct Step {
    ItemType type;
    Rank to;
    std::vector<std::uint64_t> offsets;
    std::vector<std::byte> items;
    bool flush;
  };

  std::size_t bytes() const { return 8 * (ranks_ * producers_ * words_ + kSharedWords); }

  Step draw(std::mt19937_64& random, Rank rank, std::size_t producer, std::size_t step) const {
    Step drawn{{}, static_cast<Rank>(random() % ranks_), {}, {}, random() % 40 == 0};
    const std::size_t kind = mixed_ ? random() % 3 : seed_ % 3;
    const std::size_t count = 1 + (random() % 3 == 0 ? random() % 30 : 0);
    const std::size_t own = 8 * (rank * producers_ + producer) * words_;
    drawn.type = {static_cast<ItemKind>(kind), 0, kind == 2 ? 16u : 8u};
    if (kind == 0 && random() % 3 == 0)
      drawn.type.bytes = static_cast<std::uint32_t>(8 << random() % 4);
    std::size_t at = random();
    for (std::size_t item = 0; item < count; ++item) {
      at = random() % 2 == 0 ? at + 1 : random();
      const std::size_t room = words_ - drawn.type.bytes / 8 + 1;
      switch (drawn.type.kind) {
        case ItemKind::put: drawn.offsets.push_back(own + at % room * 8); break;
        case ItemKind::add: drawn.offsets.push_back(bytes() - 8 * (1 + at % kSharedWords)); break;
        case ItemKind::send: break;
      }
      std::uint64_t words[32];
      for (std::uint64_t& word : words) word = word_of(rank, producer, step * 64 + item);
      if (kind == 2) words[0] = rank << 8 | producer;
      const auto* const first = reinterpret_cast<const std::byte*>(words);
      drawn.items.insert(drawn.items.end(), first, first + drawn.type.bytes);
    }
    return drawn;
  }

  std::mt19937_64 random_of(Rank rank, std::size_t producer) const {
    return std::mt19937_64(seed_ * 1000 + rank * 10 + producer);
  }

  void execute(Rank rank, std::size_t producer) {
    auto random = random_of(rank, producer);
    for (std::size_t step = 0; step < epochs_ * steps_; ++step) {
      const Step drawn = draw(random, rank, producer, step);
      const std::size_t size = drawn.type.bytes;
      for (std::size_t at = 0; at * size < drawn.items.size(); ++at) {
        const std::byte* const item = drawn.items.data() + at * size;
        if (drawn.type.kind == ItemKind::send) {
          Record record;
          std::memcpy(&record, item, sizeof record);
          handled_[{drawn.to, record.source}].push_back(record.step);
          continue;
        }
        std::byte* const to = wanted_[drawn.to].data() + drawn.offsets[at];
        if (drawn.type.kind == ItemKind::put) {
          std::memcpy(to, item, size);
        } else {
          std::uint64_t sum, more;
          std::memcpy(&sum, to, 8);
          std::memcpy(&more, item, 8);
          sum += more;
          std::memcpy(to, &sum, 8);
        }
      }
    }
  }

  void rank_program(weir_fabric& fabric) {
    std::vector<std::byte> memory(bytes());
    std::map<std::uint64_t, std::vector<std::uint64_t>> handled;
    const Rank rank = fabric.port().rank();
    ConveyorSetup setup = setup_;
    setup.name = "random";
    setup.memory = memory.data();
    setup.bytes = memory.size();
    setup.handler_bytes = {16};
    setup.handlers = {[&](Rank from, const std::byte* items, std::size_t count) -> Outcome {
      for (std::size_t at = 0; at < count; ++at) {
        Record record;
        std::memcpy(&record, items + 16 * at, sizeof record);
        if (record.source >> 8 != from) return {WEIR_STATUS_INTERNAL, "wrong sender"};
        handled[record.source].push_back(record.step);
      }
      return {};
    }};
    Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
    std::vector<std::unique_ptr<Producer>> ways;
    std::vector<std::mt19937_64> randoms;
    for (std::size_t producer = 0; producer < producers_; ++producer) {
      ways.push_back(std::make_unique<Producer>(conveyor));
      randoms.push_back(random_of(rank, producer));
    }
    for (std::size_t epoch = 0; epoch < epochs_; ++epoch) {
      {
        std::vector<sys::Thread> threads;
        for (std::size_t producer = 0; producer < producers_; ++producer) {
          threads.emplace_back("producer", [&, producer] {
            for (std::size_t step = epoch * steps_; step < (epoch + 1) * steps_; ++step) {
              const Step drawn = draw(randoms[producer], rank, producer, step);
              ways[producer]->put(drawn.type, drawn.to, drawn.offsets.data(), drawn.items.data(),
                                  drawn.items.size() / drawn.type.bytes);
              if (drawn.flush) ways[producer]->flush(kMinute);
            }
          });
        }
      }
      conveyor.finish(kMinute);
    }
    if (conveyor.counts().most_in_flight > setup_.blocks_in_flight) {
      fail(WEIR_STATUS_INTERNAL, "{} blocks were in flight", conveyor.counts().most_in_flight);
    }
    if (memory != wanted_[rank]) fail(WEIR_STATUS_INTERNAL, "the memory differs");
    for (Rank from = 0; from < ranks_; ++from) {
      for (std::size_t producer = 0; producer < producers_; ++producer) {
        const std::uint64_t source = std::uint64_t{from} << 8 | producer;
        const auto found = handled_.find({rank, source});
        const auto want = found != handled_.end() ? found->second : std::vector<std::uint64_t>();
        if (handled[source] != want) fail(WEIR_STATUS_INTERNAL, "what the handler got differs");
      }
    }
  }

  const std::uint64_t seed_;
  Rank ranks_;
  std::size_t producers_, epochs_, words_, steps_;
  bool mixed_;
  ProgressBy progress_;
  ConveyorSetup setup_;
  std::vector<std::vector<std::byte>> wanted_;
  std::map<std::pair<Rank, std::uint64_t>, std::vector<std::uint64_t>> handled_;
};

void run_programs(std::uint64_t usual_count, RandomProgram::Links links) {
  const char* const wanted = std::getenv("WEIR_TEST_PROGRAMS");
  const char* const first = std::getenv("WEIR_TEST_SEED");
  const std::uint64_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual_count;
  const std::uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  for (std::uint64_t seed = begin; seed < begin + count; ++seed) {
    ASSERT_EQ(RandomProgram(seed).run(links), "")
        << "replay: WEIR_TEST_PROGRAMS=1 WEIR_TEST_SEED=" << seed
        << " unit_conveyor --gtest_filter='Conveyor.RandomPrograms*'";
  }
}

TEST(Conveyor, RandomProgramsEqualTheirSequentialExecution) {
  run_programs(500, RandomProgram::Links::plain);
}

TEST(Conveyor, RandomProgramsOverSharedMemory_EqualTheirSequentialExecution) {
  run_programs(200, RandomProgram::Links::sharing);
}

TEST(Conveyor, RandomProgramsWithReservedPackets_EqualTheirSequentialExecution) {
  run_programs(200, RandomProgram::Links::reserving);
}

TEST(Conveyor, RandomProgramsInNodes_EqualTheirSequentialExecution) {
  run_programs(200, RandomProgram::Links::nodes);
}

// ---- Rules --------------------------------------------------------------------------------------

TEST(Conveyor, BlocksInFlightAtTheLimit_NoMoreAreSent) {
  sys::Atomic<bool> open{false};
  sys::Atomic<std::uint64_t> handled{0};
  constexpr std::uint64_t kItems = 10'000;
  const std::string wrong = on_ranks(
      2, 0,
      [&](weir_fabric& fabric) {
        ConveyorSetup setup;
        setup.name = "gated";
        setup.block_bytes = 1024;
        setup.blocks_in_flight = 3;
        setup.handler_bytes = {8};
        setup.handlers = {[&](Rank, const std::byte*, std::size_t count) -> Outcome {
          while (!open.load()) sys::yield();
          handled.fetch_add(count);
          return {};
        }};
        Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
        const auto producer = std::make_unique<Producer>(conveyor);
        if (fabric.port().rank() == 0) {
          sys::Thread putting("putting", [&] {
            for (std::uint64_t item = 0; item < kItems; ++item) {
              producer->put({ItemKind::send, 0, 8}, 1, nullptr,
                            reinterpret_cast<const std::byte*>(&item), 1);
            }
          });
          while (conveyor.counts().blocks < 3) sys::yield();
          for (int poll = 0; poll < 1000; ++poll) {
            sys::yield();
            EXPECT_EQ(conveyor.counts().blocks, 3u);
          }
          EXPECT_EQ(handled.load(), 0u);
          open.store(true);
          putting.join();
        }
        conveyor.finish(kMinute);
        EXPECT_EQ(handled.load(), kItems);
        if (fabric.port().rank() == 0) {
          EXPECT_EQ(conveyor.counts().most_in_flight, 3u);
        }
      },
      "thread");
  EXPECT_EQ(wrong, "");
}

/// One rank alone, with a table of 64 words.
class Alone {
 public:
  explicit Alone(weir_fabric& fabric, ConveyorSetup setup = {})
      : conveyor(fabric.conveyors(), fabric.collectives(), complete(std::move(setup))),
        producer(std::make_unique<Producer>(conveyor)) {}

  void put(std::uint64_t offset, std::uint64_t value) {
    producer->put({ItemKind::put, 0, 8}, 0, &offset, reinterpret_cast<std::byte*>(&value), 1);
  }

  std::vector<std::uint64_t> table = std::vector<std::uint64_t>(64);
  Conveyor conveyor;
  std::unique_ptr<Producer> producer;

 private:
  ConveyorSetup complete(ConveyorSetup setup) {
    setup.name = "alone";
    setup.memory = reinterpret_cast<std::byte*>(table.data());
    setup.bytes = 8 * table.size();
    return setup;
  }
};

TEST(Conveyor, Flush_ReturnsAfterItemsAreApplied) {
  EXPECT_EQ(on_ranks(1, 0,
                     [](weir_fabric& fabric) {
                       Alone alone(fabric);
                       for (std::uint64_t value = 1; value < 200; ++value) {
                         alone.put(8 * (value % 64), value);
                         alone.producer->flush(kMinute);
                         ASSERT_EQ(alone.table[value % 64], value);
                       }
                     }),
            "");
}

TEST(Conveyor, BlockPastItsAge_IsSentByLaterPuts) {
  EXPECT_EQ(on_ranks(1, 0,
                     [](weir_fabric& fabric) {
                       ConveyorSetup setup;
                       setup.age_ns = 0;
                       Alone alone(fabric, setup);
                       alone.put(0, 1);
                       EXPECT_EQ(alone.conveyor.counts().blocks, 0u);
                       alone.producer->put({ItemKind::put, 0, 8}, 0, nullptr, nullptr, 0);
                       EXPECT_EQ(alone.conveyor.counts().blocks, 1u);
                       for (int call = 0; call < 128; ++call) alone.put(8, 2);
                       EXPECT_GE(alone.conveyor.counts().blocks, 2u);
                     }),
            "");
}

TEST(Conveyor, UnlimitedAge_BlockStaysOpenUntilFinish) {
  EXPECT_EQ(on_ranks(1, 0,
                     [](weir_fabric& fabric) {
                       ConveyorSetup setup;
                       setup.age_ns = -1;
                       Alone alone(fabric, setup);
                       for (int call = 0; call < 1000; ++call) alone.put(8, 2);
                       EXPECT_EQ(alone.conveyor.counts().blocks, 0u);
                       alone.conveyor.finish(kMinute);
                       EXPECT_EQ(alone.conveyor.counts().blocks, 1u);
                       EXPECT_EQ(alone.conveyor.counts().combined, 999u);
                     }),
            "");
}

TEST(Conveyor, PutWithInvalidRankSizeOffsetOrHandler_Throws) {
  EXPECT_EQ(
      on_ranks(
          1, 0,
          [](weir_fabric& fabric) {
            Alone alone(fabric);
            Producer& producer = *alone.producer;
            std::byte item[512] = {};
            const auto put = [&](ItemType type, Rank to, std::uint64_t offset) {
              return thrown_by<Error>([&] { producer.put(type, to, &offset, item, 1); });
            };
            EXPECT_EQ(put({ItemKind::put, 0, 8}, 1, 0),
                      "there is no rank 1: the last of the fabric is 0");
            EXPECT_EQ(put({ItemKind::put, 0, 12}, 0, 0),
                      "an item has 12 bytes: it must be a multiple of 8, and 256 at most");
            EXPECT_EQ(put({ItemKind::put, 0, 264}, 0, 0),
                      "an item has 264 bytes: it must be a multiple of 8, and 256 at most");
            EXPECT_EQ(put({ItemKind::put, 0, 0}, 0, 0),
                      "an item has 0 bytes: it must be a multiple of 8, and 256 at most");
            EXPECT_EQ(put({ItemKind::put, 0, 64}, 0, 449),
                      "offset 449 with 64 bytes is outside the memory of rank 0, which has 512");
            EXPECT_EQ(
                put({ItemKind::put, 0, 8}, 0, UINT64_MAX),
                "offset 18446744073709551615 with 8 bytes is outside the memory of rank 0, which "
                "has 512");
            EXPECT_EQ(put({ItemKind::add, 0, 8}, 0, 12),
                      "offset 12 of an add is not a multiple of 8");
            EXPECT_EQ(put({ItemKind::send, 0, 8}, 0, 0),
                      "there is no handler 0: the conveyor has 0");
            EXPECT_EQ(put({ItemKind::put, 0, 64}, 0, 448), "");
            alone.conveyor.finish(kMinute);
            EXPECT_EQ(alone.conveyor.counts().items, 1u);
          }),
      "");
}

TEST(Conveyor, PutInsideAHandler_ThrowsAndFinishReportsTheFailureOnce) {
  EXPECT_EQ(on_ranks(1, 0,
                     [](weir_fabric& fabric) {
                       ConveyorSetup setup;
                       Producer* inside = nullptr;
                       setup.handler_bytes = {8};
                       setup.handlers = {[&](Rank, const std::byte* items, std::size_t) -> Outcome {
                         return {WEIR_STATUS_KERNEL_ERROR, thrown_by<Error>([&] {
                                   inside->put({ItemKind::send, 0, 8}, 0, nullptr, items, 1);
                                 })};
                       }};
                       Alone alone(fabric, setup);
                       inside = alone.producer.get();
                       const std::uint64_t item = 1;
                       inside->put({ItemKind::send, 0, 8}, 0, nullptr,
                                   reinterpret_cast<const std::byte*>(&item), 1);
                       EXPECT_EQ(
                           thrown_by<Error>([&] { alone.conveyor.finish(kMinute); }),
                           "a handler, a kernel or a callback cannot use a conveyor: it may wait");
                       alone.conveyor.finish(kMinute);
                     }),
            "");
}

TEST(Conveyor, RanksWithDifferentHandlers_CreationFails) {
  const std::string wrong = on_ranks(2, 0, [](weir_fabric& fabric) {
    ConveyorSetup setup;
    setup.name = "unequal";
    setup.handler_bytes = {fabric.port().rank() == 0 ? 8u : 16u};
    setup.handlers.resize(1);
    Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
  });
  EXPECT_NE(wrong.find("conveyor 'unequal' with handlers for [8] bytes"), std::string::npos)
      << wrong;
  EXPECT_NE(wrong.find("[16] bytes"), std::string::npos) << wrong;
}

TEST(Conveyor, PutToARankThatHasLeft_FailsButOtherRanksStillReceive) {
  EXPECT_EQ(on_ranks(3, 0,
                     [](weir_fabric& fabric) {
                       std::vector<std::uint64_t> table(64);
                       ConveyorSetup setup;
                       setup.name = "left";
                       setup.memory = reinterpret_cast<std::byte*>(table.data());
                       setup.bytes = 512;
                       Conveyor conveyor(fabric.conveyors(), fabric.collectives(),
                                         std::move(setup));
                       const Rank rank = fabric.port().rank();
                       if (rank == 2) return;
                       while (fabric.port().alive(2))
                         fabric.port().wait_until([] { return true; }, 0, "end");
                       const auto producer = std::make_unique<Producer>(conveyor);
                       const std::uint64_t offset = 8 * rank, value = rank + 1;
                       const auto put_to = [&](Rank to) {
                         producer->put({ItemKind::put, 0, 8}, to, &offset,
                                       reinterpret_cast<const std::byte*>(&value), 1);
                       };
                       const std::string why = thrown_by<Error>([&] {
                         put_to(2);
                         producer->flush(kMinute);
                       });
                       EXPECT_NE(why.find("rank 2"), std::string::npos) << why;
                       put_to(1 - rank);
                       conveyor.finish(kMinute);
                       EXPECT_EQ(table[1 - rank], 2u - rank);
                     }),
            "");
}

TEST(Conveyor, AgedBlockToARankThatHasLeft_FailsTheNextFlushOnce) {
  EXPECT_EQ(
      on_ranks(2, 0,
               [](weir_fabric& fabric) {
                 std::uint64_t word = 0;
                 ConveyorSetup setup;
                 setup.name = "dropped";
                 setup.memory = reinterpret_cast<std::byte*>(&word);
                 setup.bytes = 8;
                 setup.age_ns = 0;
                 Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
                 const auto producer = std::make_unique<Producer>(conveyor);
                 const std::uint64_t offset = 0, value = 1;
                 const auto* const item = reinterpret_cast<const std::byte*>(&value);
                 if (fabric.port().rank() == 0) {
                   producer->put({ItemKind::put, 0, 8}, 1, &offset, item, 1);
                 }
                 fabric.barrier(kMinute);
                 if (fabric.port().rank() == 1) return;
                 fabric.port().wait_until([&] { return !fabric.port().alive(1); }, kMinute, "end");
                 producer->put({ItemKind::put, 0, 8}, 0, &offset, nullptr, 0);
                 const std::string why = thrown_by<Error>([&] { producer->flush(kMinute); });
                 EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
                 producer->flush(kMinute);
               }),
      "");
}

TEST(Conveyor, AgedBlockWithoutMemoryToSend_FailsTheNextFlushOnce) {
  if (!test::NoMemory::kWorks) GTEST_SKIP() << "the sanitizer has operator new to itself";
  EXPECT_EQ(on_ranks(
                1, 0,
                [](weir_fabric& fabric) {
                  ConveyorSetup setup;
                  setup.age_ns = 0;
                  Alone alone(fabric, setup);
                  alone.put(0, 1);
                  bool threw = false;
                  try {
                    const test::NoMemory none;
                    alone.producer->put({ItemKind::put, 0, 8}, 0, nullptr, nullptr, 0);
                  } catch (const std::bad_alloc&) {
                    threw = true;
                  }
                  EXPECT_FALSE(threw) << "it has put nothing";
                  EXPECT_EQ(thrown_by<Error>([&] { alone.producer->flush(kMinute); }),
                            "items for rank 0 were dropped");
                  alone.producer->flush(kMinute);
                },
                "thread"),
            "");
}

TEST(Conveyor, FlushTimesOut_NextFlushReportsTheFailure) {
  sys::Atomic<bool> open{false};
  EXPECT_EQ(on_ranks(
                3, 0,
                [&](weir_fabric& fabric) {
                  ConveyorSetup setup;
                  setup.name = "gated";
                  setup.age_ns = -1;
                  setup.handler_bytes = {8};
                  setup.handlers = {[&](Rank, const std::byte*, std::size_t) -> Outcome {
                    while (!open.load()) sys::yield();
                    return {};
                  }};
                  Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
                  const auto producer = std::make_unique<Producer>(conveyor);
                  const std::uint64_t value = 1;
                  if (fabric.port().rank() == 0) {
                    for (const Rank to : {1u, 2u}) {
                      producer->put({ItemKind::send, 0, 8}, to, nullptr,
                                    reinterpret_cast<const std::byte*>(&value), 1);
                    }
                  }
                  fabric.barrier(kMinute);
                  if (fabric.port().rank() == 1) return;
                  fabric.port().wait_until([&] { return !fabric.port().alive(1); }, kMinute, "end");
                  fabric.barrier(kMinute);
                  if (fabric.port().rank() == 0) {
                    EXPECT_EQ(thrown_by<Error>([&] { producer->flush(1); }),
                              "not all items have been applied within 1e-09 s");
                    open.store(true);
                    const std::string why = thrown_by<Error>([&] { producer->flush(kMinute); });
                    EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
                    producer->flush(kMinute);
                  }
                  fabric.barrier(kMinute);
                },
                "thread"),
            "");
}

TEST(Conveyor, FinishTimesOut_NextFinishReportsTheFailure) {
  sys::Atomic<bool> late{true};
  EXPECT_EQ(on_ranks(2, 0,
                     [&](weir_fabric& fabric) {
                       ConveyorSetup setup;
                       setup.name = "failing";
                       setup.handler_bytes = {8};
                       setup.handlers = {[](Rank, const std::byte*, std::size_t) -> Outcome {
                         return {WEIR_STATUS_KERNEL_ERROR, "the handler failed"};
                       }};
                       Conveyor conveyor(fabric.conveyors(), fabric.collectives(),
                                         std::move(setup));
                       if (fabric.port().rank() == 0) {
                         const auto producer = std::make_unique<Producer>(conveyor);
                         const std::uint64_t value = 1;
                         producer->put({ItemKind::send, 0, 8}, 0, nullptr,
                                       reinterpret_cast<const std::byte*>(&value), 1);
                         producer->flush(kMinute);
                         EXPECT_EQ(thrown_by<Error>([&] { conveyor.finish(1); }),
                                   "rank 1 has not reached the barrier");
                         late.store(false);
                         EXPECT_EQ(thrown_by<Error>([&] { conveyor.finish(kMinute); }),
                                   "the handler failed");
                       } else {
                         while (late.load()) sys::yield();
                         conveyor.finish(kMinute);
                       }
                       conveyor.finish(kMinute);
                     }),
            "");
}

/// Rank 1 takes nothing until rank 0 has given up twice.
TEST(Conveyor, FullLink_FlushAndFinishTimeOut) {
  sys::Atomic<bool> over{false};
  const auto program = [&](weir_fabric& fabric) {
    ConveyorSetup setup;
    setup.name = "crowded";
    setup.handler_bytes = {8};
    setup.handlers = {[](Rank, const std::byte*, std::size_t) -> Outcome { return {}; }};
    Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
    const auto producer = std::make_unique<Producer>(conveyor);
    if (fabric.port().rank() == 0) {
      fabric.port().send(1, Channel::user, std::vector<std::byte>(4u << 20));
      const std::uint64_t value = 1;
      producer->put({ItemKind::send, 0, 8}, 1, nullptr, reinterpret_cast<const std::byte*>(&value),
                    1);
      EXPECT_EQ(thrown_by<Error>([&] { producer->flush(1'000'000); }),
                "not all items have been applied within 0.001 s");
      EXPECT_EQ(thrown_by<Error>([&] { conveyor.finish(1'000'000); }),
                "not all items of conveyor 'crowded' have been applied yet");
      over.store(true);
    }
    const std::int64_t deadline = sys::deadline_after(kMinute / 6);
    while (!over.load() && sys::now_ns() < deadline) sys::yield();
    EXPECT_TRUE(over.load()) << "rank 0 waits for rank 1";
    conveyor.finish(kMinute);
  };
  EXPECT_EQ(on_ranks(2, 0, program, "caller"), "");
  over.store(false);
  EXPECT_EQ(on_reserving_ranks(2, 0, 1, program, ProgressBy::caller), "");
}

/// Another thread that moves rank 0 on is in a handler until then.
TEST(Conveyor, HandlerRunsOnAnotherThread_TimedFlushDoesNotWaitForIt) {
  sys::Atomic<bool> entered{false}, open{false};
  const auto program = [&](weir_fabric& fabric) {
    ConveyorSetup setup;
    setup.name = "gated";
    setup.age_ns = -1;
    setup.handler_bytes = {8};
    setup.handlers = {[&](Rank, const std::byte*, std::size_t) -> Outcome {
      const std::int64_t deadline = sys::deadline_after(kMinute / 6);
      entered.store(true);
      while (!open.load() && sys::now_ns() < deadline) sys::yield();
      EXPECT_TRUE(open.load()) << "flush() waits for the handler";
      return {};
    }};
    Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
    if (fabric.port().rank() == 0) {
      const auto here = std::make_unique<Producer>(conveyor),
                 there = std::make_unique<Producer>(conveyor);
      const std::uint64_t value = 1;
      const auto* const item = reinterpret_cast<const std::byte*>(&value);
      there->put({ItemKind::send, 0, 8}, 1, nullptr, item, 1);
      here->put({ItemKind::send, 0, 8}, 0, nullptr, item, 1);
      sys::Thread other("other", [&] { here->flush(kMinute); });
      while (!entered.load()) sys::yield();
      EXPECT_NE(thrown_by<Error>([&] { there->flush(1); }), "");
      open.store(true);
      other.join();
      there->flush(kMinute);
    }
    conveyor.finish(kMinute);
  };
  EXPECT_EQ(on_sharing_ranks(2, program, ProgressBy::thread), "");
}

TEST(Conveyor, BlockForADestroyedConveyor_FailsTheFlushOfItsSender) {
  EXPECT_EQ(
      on_ranks(2, 0,
               [](weir_fabric& fabric) {
                 std::vector<std::uint64_t> table(64);
                 ConveyorSetup setup;
                 setup.name = "gone";
                 setup.memory = reinterpret_cast<std::byte*>(table.data());
                 setup.bytes = 512;
                 auto conveyor = std::make_unique<Conveyor>(fabric.conveyors(),
                                                            fabric.collectives(), std::move(setup));
                 if (fabric.port().rank() == 1) conveyor.reset();
                 fabric.barrier(kMinute);
                 if (fabric.port().rank() == 0) {
                   const auto producer = std::make_unique<Producer>(*conveyor);
                   const std::uint64_t offset = 0, value = 1;
                   producer->put({ItemKind::put, 0, 8}, 1, &offset,
                                 reinterpret_cast<const std::byte*>(&value), 1);
                   EXPECT_EQ(
                       thrown_by<Error>([&] { producer->flush(kMinute); }),
                       "rank 1 refused a block of conveyor 'gone': it has destroyed the conveyor");
                 }
                 fabric.barrier(kMinute);
               }),
      "");
}

TEST(Conveyor, RefusedBlockOfADestroyedProducer_FailsFinish) {
  EXPECT_EQ(
      on_ranks(2, 0,
               [](weir_fabric& fabric) {
                 std::uint64_t word = 0;
                 ConveyorSetup setup;
                 setup.name = "closed";
                 setup.memory = reinterpret_cast<std::byte*>(&word);
                 setup.bytes = 8;
                 auto conveyor = std::make_unique<Conveyor>(fabric.conveyors(),
                                                            fabric.collectives(), std::move(setup));
                 if (fabric.port().rank() == 1) conveyor.reset();
                 fabric.barrier(kMinute);
                 if (fabric.port().rank() == 0) {
                   const std::uint64_t offset = 0, value = 1;
                   Producer(*conveyor).put({ItemKind::put, 0, 8}, 1, &offset,
                                           reinterpret_cast<const std::byte*>(&value), 1);
                 }
                 fabric.barrier(kMinute);
                 fabric.barrier(kMinute);  // of which rank 1 tells behind its refusal
                 if (fabric.port().rank() == 1) return fabric.barrier(kMinute);
                 EXPECT_EQ(
                     thrown_by<Error>([&] { conveyor->finish(kMinute); }),
                     "rank 1 refused a block of conveyor 'closed': it has destroyed the conveyor");
               }),
      "");
}

TEST(Conveyor, AckOfBlocksThatWereNotSent_FailsTheNextPut) {
  EXPECT_EQ(
      on_ranks(2, 0,
               [](weir_fabric& fabric) {
                 std::uint64_t word = 0;
                 ConveyorSetup setup;
                 setup.name = "lied to";
                 setup.memory = reinterpret_cast<std::byte*>(&word);
                 setup.bytes = 8;
                 Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
                 const bool lies = fabric.port().rank() == 1;
                 if (lies) {
                   fabric.conveyors().post(0, 0, ConveyorHub::ack, 5);
                 }
                 fabric.barrier(kMinute);
                 if (!lies) {
                   const std::uint64_t offset = 0, value = 1;
                   const auto* const item = reinterpret_cast<const std::byte*>(&value);
                   EXPECT_EQ(thrown_by<Error>([&] {
                               Producer(conveyor).put({ItemKind::put, 0, 8}, 1, &offset, item, 1);
                             }),
                             "rank 1 says that 5 of 0 blocks of conveyor 'lied to' are applied");
                 }
                 fabric.barrier(kMinute);
               }),
      "");
}

/// Where the next memory of a rank that others can read would be.
void* first_free(Port& port) {
  void* const memory = port.allocate(8);
  port.release(memory);
  return memory;
}

/// Rank 1 takes its time to apply what rank 0 has sent and left behind, in memory of the latter.
TEST(Conveyor, DestroyWithUnreadLentBlocks_ReleasesTheirMemoryAfterTheRead) {
  sys::Atomic<bool> open{false}, entered{false};
  constexpr std::uint64_t kItems = 800;
  std::uint64_t count = 0, sum = 0;
  EXPECT_EQ(
      on_sharing_ranks(
          2,
          [&](weir_fabric& fabric) {
            Port& port = fabric.port();
            ConveyorSetup setup;
            setup.name = "left behind";
            setup.block_bytes = 1024;
            setup.age_ns = -1;
            setup.handler_bytes = {8};
            setup.handlers = {[&](Rank, const std::byte* items, std::size_t number) -> Outcome {
              entered.store(true);
              while (!open.load()) sys::yield();
              for (std::size_t at = 0; at < number; ++at) {
                std::uint64_t item;
                std::memcpy(&item, items + 8 * at, 8);
                sum += item;
              }
              count += number;
              return {};
            }};
            const void* const before = first_free(port);
            auto conveyor = std::make_unique<Conveyor>(fabric.conveyors(), fabric.collectives(),
                                                       std::move(setup));
            if (port.rank() == 0) {
              auto producer = std::make_unique<Producer>(*conveyor);
              for (std::uint64_t item = 1; item <= kItems; ++item) {
                producer->put({ItemKind::send, 0, 8}, 1, nullptr,
                              reinterpret_cast<const std::byte*>(&item), 1);
              }
              EXPECT_GE(conveyor->counts().blocks, 2u);
              producer.reset();
              while (!entered.load()) sys::yield();
              conveyor.reset();
              EXPECT_NE(first_free(port), before);
              open.store(true);
              EXPECT_TRUE(port.wait_until([&] { return first_free(port) == before; }, kMinute,
                                          "memory that was left behind"));
            }
            fabric.barrier(kMinute);
          },
          ProgressBy::thread),
      "");
  EXPECT_EQ(count, kItems);
  EXPECT_EQ(sum, kItems * (kItems + 1) / 2);
}

/// Rank 1, which is in a handler, is given up, and then reads on.
TEST(Conveyor, DestroyAfterTheReaderIsLost_KeepsTheMemoryOfLentBlocks) {
  sys::Atomic<bool> open{false}, entered{false};
  const auto program = [&](weir_fabric& fabric) {
    Port& port = fabric.port();
    ConveyorSetup setup;
    setup.name = "given up";
    setup.age_ns = -1;
    setup.handler_bytes = {8};
    setup.handlers = {[&](Rank, const std::byte*, std::size_t) -> Outcome {
      entered.store(true);
      while (!open.load()) sys::yield();
      return {};
    }};
    const void* const before = first_free(port);
    auto conveyor =
        std::make_unique<Conveyor>(fabric.conveyors(), fabric.collectives(), std::move(setup));
    if (port.rank() == 1) {
      while (!open.load()) sys::yield();
      return;
    }
    auto producer = std::make_unique<Producer>(*conveyor);
    const std::uint64_t item = 1;
    producer->put({ItemKind::send, 0, 8}, 1, nullptr, reinterpret_cast<const std::byte*>(&item), 1);
    producer.reset();
    while (!entered.load()) sys::yield();
    port.drop(1, "is given up");
    EXPECT_TRUE(port.wait_until([&] { return !port.alive(1); }, kMinute, "the end of rank 1"));
    conveyor.reset();
    EXPECT_NE(first_free(port), before);
    open.store(true);
  };
  EXPECT_EQ(on_sharing_ranks(2, program, ProgressBy::thread), "");
}

/// Rank 0 tells rank 1 of a block, with the number of their conveyor. Returns what rank 1 says.
std::string tell_of(const LentBlock& block, std::uint32_t number, weir_fabric& fabric) {
  ConveyorSetup setup;
  setup.name = "elsewhere";
  setup.handler_bytes = {8};
  setup.handlers.resize(1);
  Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
  const bool sends = fabric.port().rank() == 0;
  if (sends) {
    fabric.conveyors().post(1, number, ConveyorHub::lent | ConveyorHub::asks, 0, bytes_of(block));
  }
  std::string why = thrown_by<Error>([&] { conveyor.finish(kMinute); });
  fabric.barrier(kMinute);
  const std::uint64_t item = 1;
  if (sends) {
    why = thrown_by<Error>([&] {
      Producer(conveyor).put({ItemKind::send, 0, 8}, 1, nullptr,
                             reinterpret_cast<const std::byte*>(&item), 1);
    });
  }
  fabric.barrier(kMinute);
  return why;
}

TEST(Conveyor, LentBlockOutsideSharedMemory_IsRefusedOnBothRanks) {
  EXPECT_EQ(on_sharing_ranks(
                2,
                [](weir_fabric& fabric) {
                  Port& port = fabric.port();
                  const std::uint64_t own = port.offset_of(port.allocate(64)).value();
                  std::uint64_t places[2] = {};
                  const auto all = fabric.collectives().exchange("places", bytes_of(own), kMinute);
                  for (Rank rank : {0u, 1u}) std::memcpy(&places[rank], all[rank].data(), 8);
                  const auto [mine, theirs] = places;
                  const LentBlock elsewhere[] = {{theirs, 64, mine, 0},
                                                 {mine, 64, theirs, 64},
                                                 {mine, UINT64_MAX, mine, 0},
                                                 {UINT64_MAX - 8, 64, mine, 64},
                                                 {0, 64, 0, 64}};
                  const std::string said =
                      port.rank() == 0 ? "rank 1 refused a block of conveyor 'elsewhere': it "
                                       : "a block of rank 0 ";
                  std::uint32_t number = 0;
                  for (const LentBlock& block : elsewhere) {
                    EXPECT_EQ(tell_of(block, number++, fabric),
                              said + "is not in the memory that the rank shares");
                  }
                  EXPECT_EQ(tell_of({mine, 64, mine, 0}, number, fabric), said + "begins with 0x0");
                },
                ProgressBy::hybrid),
            "");
}

/// Rank 0 leaves, and its hub has not heard that rank 1 refuses.
TEST(Conveyor, ReaderHasRefusedItsBlocks_MemoryLentToItIsReleased) {
  const auto program = [](weir_fabric& fabric) {
    Port& port = fabric.port();
    ConveyorSetup setup;
    setup.name = "refused";
    setup.handler_bytes = {8};
    setup.handlers.resize(1);
    auto conveyor =
        std::make_unique<Conveyor>(fabric.conveyors(), fabric.collectives(), std::move(setup));
    const LentBlock nowhere{};
    if (port.rank() == 0) {
      fabric.conveyors().post(1, 0, ConveyorHub::lent, 0, bytes_of(nowhere));
    }
    fabric.barrier(kMinute);
    fabric.barrier(kMinute);
    if (port.rank() == 0) {
      conveyor.reset();
      auto* const memory = static_cast<std::byte*>(port.allocate(64));
      fabric.conveyors().release_later(0, 1, 1, {memory});
      const auto is_free = [&] {
        void* const first = port.allocate(64);
        port.release(first);
        return first == memory;
      };
      EXPECT_TRUE(port.wait_until(is_free, kMinute, "memory that was left behind"));
    }
    fabric.barrier(kMinute);
  };
  EXPECT_EQ(on_sharing_ranks(2, program, ProgressBy::thread), "");
}

/// Rank 0 sends rank 1 nonsense as a block. `why` is what is wrong with that.
void expect_refused(GroupHub::Kind kind, std::uint64_t value, const std::string& why) {
  const auto program = [&](weir_fabric& fabric) {
    std::vector<std::uint64_t> table(64);
    ConveyorSetup setup;
    setup.name = "damaged";
    setup.memory = reinterpret_cast<std::byte*>(table.data());
    setup.bytes = 512;
    Conveyor conveyor(fabric.conveyors(), fabric.collectives(), std::move(setup));
    const bool sends = fabric.port().rank() == 0;
    if (sends) {
      const std::byte nonsense[64] = {};
      fabric.conveyors().post(1, 0, static_cast<GroupHub::Kind>(kind | ConveyorHub::asks), value,
                              nonsense);
    }
    EXPECT_EQ(thrown_by<Error>([&] {
                conveyor.finish(kMinute);
                fabric.barrier(kMinute);
                const std::uint64_t offset = 0, word = 1;
                if (sends) {
                  Producer(conveyor).put({ItemKind::put, 0, 8}, 1, &offset,
                                         reinterpret_cast<const std::byte*>(&word), 1);
                }
              }),
              sends ? "rank 1 refused a block of conveyor 'damaged': it " + why
                    : "a block of rank 0 " + why);
    fabric.barrier(kMinute);
  };
  EXPECT_EQ(on_ranks(2, 0, program), "");
}

TEST(Conveyor, DamagedBlock_IsRefusedOnBothRanks) {
  using Kind = ConveyorHub::MessageKind;
  expect_refused(Kind::block, 0, "begins with 0x0");
  expect_refused(Kind::packet, 16, "begins with 0x0");
  expect_refused(Kind::packet, 64, "is only 0 bytes long");
  expect_refused(Kind::packet, 65, "claims 65 bytes of data where it has 64");
  expect_refused(Kind::packet, UINT64_MAX,
                 fmt::format("claims {} bytes of data where it has 64", UINT64_MAX));
}

}  // namespace
}  // namespace weir::rt
