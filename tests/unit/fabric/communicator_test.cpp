#include "fabric/communicator.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.hpp"
#include "runtime/reduction.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

using test::all_of;
using test::kAMinute;
using test::on_ranks;
using test::on_sharing_ranks;

constexpr std::int64_t kShortPatience = 50'000'000;

/// The communicator of all ranks of a port.
struct World {
  explicit World(Port& port) : hub(port), group(hub, 0, all_of(port)) {}

  CollectiveHub hub;
  Communicator group;
};

template <class Number>
Numbers numbers_in(std::vector<Number>& values, weir_number type,
                   weir_fabric_op op = WEIR_FABRIC_OP_SUM) {
  weir_reduction reduction = WEIR_REDUCTION_INIT;
  reduction.type = type;
  reduction.op = op;
  return numbers_at(values.data(), values.size(), reduction);
}

template <class Number>
std::span<std::byte> bytes_in(std::vector<Number>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// One operation of a random program, the same on all ranks of a group.
struct Step {
  Collective what;
  std::uint32_t root;
  std::size_t count;
};

Step random_step(std::mt19937& random, unsigned ranks) {
  constexpr Collective kOperations[] = {
      Collective::barrier, Collective::broadcast,  Collective::gather, Collective::scatter,
      Collective::reduce,  Collective::all_to_all, Collective::scan,   Collective::exclusive_scan};
  constexpr std::size_t kCounts[] = {0, 1, 3, 64, 511, 512, 513, 1000, 70'000};
  const bool all = random() % 2 == 0;
  return {kOperations[random() % std::size(kOperations)],
          all ? Communicator::kAllRanks : static_cast<std::uint32_t>(random() % ranks),
          kCounts[random() % std::size(kCounts)]};
}

/// The value of a rank at an index: sums of them depend on their order.
double value(std::uint32_t program, unsigned rank, std::size_t i) {
  return 1.0 / (1.0 + static_cast<double>((program * 7919u + rank * 104729u + i * 31u) % 1000u));
}

std::vector<double> values_of(std::uint32_t program, unsigned rank, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(program, rank, i);
  return values;
}

/// Returns the sums of the ranks from 0 to before `end`, in the order of the ranks.
std::vector<double> sums_of(std::uint32_t program, unsigned end, std::size_t count) {
  std::vector<double> sums = values_of(program, 0, count);
  for (unsigned rank = 1; rank < end; ++rank) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += value(program, rank, i);
  }
  return sums;
}

/// Runs a step, and compares the result with what a sequential program computes.
void run_step(Communicator& group, std::uint32_t program, const Step& step) {
  const unsigned rank = group.rank(), size = group.size();
  const unsigned root = step.root == Communicator::kAllRanks ? 0 : step.root;
  const bool receives = step.root == Communicator::kAllRanks || step.root == rank;
  std::vector<double> own = values_of(program, rank, step.count);
  std::vector<double> all(step.count * size), expected;
  for (unsigned each = 0; each < size; ++each) {
    const std::vector<double> theirs = values_of(program, each, step.count);
    expected.insert(expected.end(), theirs.begin(), theirs.end());
  }
  switch (step.what) {
    case Collective::barrier: return group.barrier(kAMinute);
    case Collective::broadcast:
      group.broadcast(root, bytes_in(own), kAMinute);
      EXPECT_EQ(own, values_of(program, root, step.count));
      return;
    case Collective::gather:
      group.gather(step.root, bytes_in(own), receives ? bytes_in(all) : std::span<std::byte>(),
                   kAMinute);
      if (receives) {
        EXPECT_EQ(all, expected);
      }
      return;
    case Collective::scatter:
      std::fill(own.begin(), own.end(), -1);
      group.scatter(root, rank == root ? bytes_in(expected) : std::span<std::byte>(), bytes_in(own),
                    kAMinute);
      EXPECT_EQ(own, values_of(program, rank, step.count));
      return;
    case Collective::reduce:
      group.reduce(step.root, numbers_in(own, WEIR_NUMBER_DOUBLE), kAMinute);
      if (receives) {
        EXPECT_EQ(own, sums_of(program, size, step.count));
      }
      return;
    case Collective::scan:
      group.scan(numbers_in(own, WEIR_NUMBER_DOUBLE), kAMinute);
      EXPECT_EQ(own, sums_of(program, rank + 1, step.count));
      return;
    case Collective::exclusive_scan:
      group.exclusive_scan(numbers_in(own, WEIR_NUMBER_DOUBLE), kAMinute);
      EXPECT_EQ(own, sums_of(program, std::max(rank, 1u), step.count));
      return;
    case Collective::all_to_all: {
      // Rank r sends r + i numbers to rank i.
      std::vector<std::vector<double>> sent(size), received(size);
      std::vector<std::span<const std::byte>> out;
      std::vector<std::span<std::byte>> in;
      for (unsigned i = 0; i < size; ++i) {
        sent[i] = values_of(program + i, rank, step.count + rank + i);
        received[i].resize(step.count + rank + i);
        out.push_back(bytes_in(sent[i]));
        in.push_back(bytes_in(received[i]));
      }
      group.all_to_all(out, in, kAMinute);
      for (unsigned i = 0; i < size; ++i) {
        EXPECT_EQ(received[i], values_of(program + rank, i, step.count + rank + i));
      }
      return;
    }
    default: FAIL();
  }
}

void run_program(Communicator& group, std::uint32_t seed, int steps) {
  std::mt19937 random(seed);
  for (int i = 0; i < steps; ++i) run_step(group, seed, random_step(random, group.size()));
}

class CommunicatorOfRanks : public testing::TestWithParam<Rank> {};

TEST_P(CommunicatorOfRanks, RandomPrograms_EqualSequentialOnes) {
  InprocHub hub(GetParam(), 0);
  on_ranks(hub, GetParam(), ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    for (std::uint32_t seed = 0; seed < 10; ++seed) run_program(world.group, seed, 20);
  });
}

TEST_P(CommunicatorOfRanks, RandomProgramsInSharedMemory_EqualSequentialOnes) {
  on_sharing_ranks(GetParam(), ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    for (std::uint32_t seed = 0; seed < 5; ++seed) run_program(world.group, seed, 20);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorOfRanks, testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST(Communicator, SplitByColor_GroupsWorkAtTheSameTime) {
  constexpr Rank kRanks = 6;
  InprocHub hub(kRanks, 0);
  on_ranks(hub, kRanks, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    for (std::uint32_t round = 1; round < 4; ++round) {
      // Three colors; the ranks of a group in the opposite order; rank 5 is in none.
      const std::int64_t color = port.rank() == 5 ? -1 : port.rank() % 3;
      Communicator::Part part;
      world.group.split(
          {color, -static_cast<std::int64_t>(port.rank()), port.rank() * 1000 + round}, kAMinute,
          part);
      if (color < 0) {
        EXPECT_TRUE(part.ranks.empty());
        continue;
      }
      Communicator group(world.hub, part.number, part.ranks);
      EXPECT_EQ(part.ranks[group.rank()], port.rank());
      EXPECT_TRUE(std::is_sorted(part.ranks.rbegin(), part.ranks.rend()));
      run_program(group, static_cast<std::uint32_t>(color) + 10 * round, 20);
    }
    world.group.barrier(kAMinute);
  });
}

TEST(Communicator, RanksCallDifferentOperations_BothAreNamedOnAllRanks) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    std::vector<double> numbers(4);
    const std::string why = thrown_by<Error>([&] {
      if (port.rank() == 2) {
        world.group.barrier(kAMinute);
      } else {
        world.group.reduce(Communicator::kAllRanks, numbers_in(numbers, WEIR_NUMBER_DOUBLE),
                           kAMinute);
      }
      world.group.barrier(kAMinute);
    });
    EXPECT_NE(why.find("calls barrier"), std::string::npos) << why;
    EXPECT_NE(why.find("calls sum of 4 doubles to all ranks"), std::string::npos) << why;
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

/// Neither rank waits for the other: the message of the root is there before the other call.
TEST(Communicator, MessageOfAnotherCallIsEarly_TheLaterCallNamesBoth) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    std::vector<double> numbers(4);
    if (port.rank() == 0) world.group.broadcast(0, bytes_in(numbers), kAMinute);
    EXPECT_TRUE(port.barrier(kAMinute).ok());
    if (port.rank() == 1) {
      const std::string why = thrown_by<Error>(
          [&] { world.group.reduce(0, numbers_in(numbers, WEIR_NUMBER_DOUBLE), kAMinute); });
      EXPECT_NE(why.find("calls sum of 4 doubles to rank 0"), std::string::npos) << why;
      EXPECT_NE(why.find("calls broadcast of 32 bytes from rank 0"), std::string::npos) << why;
    }
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, ARankCouldNotMakeTheGroup_TheOthersFailAndNameIt) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    Communicator::Part part;
    world.group.split({0, 0, port.rank() * 1000 + 1}, kAMinute, part);
    if (port.rank() == 1) {
      world.hub.refuse(part.number);
    } else {
      Communicator group(world.hub, part.number, part.ranks);
      EXPECT_EQ(thrown_by<Error>([&] { group.barrier(kAMinute); }, WEIR_STATUS_NETWORK_ERROR),
                "barrier failed: rank 1 has destroyed the communicator, or could not make it");
    }
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

// Ranks 0 and 1 wait for what only the other two would send, and these wait for ranks 0 and 1.
TEST(Communicator, RootsDiffer_AProbeFindsIt) {
  InprocHub hub(4, 0);
  on_ranks(hub, 4, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    std::vector<double> all(4), own(1);
    const unsigned root = port.rank() < 2 ? 0 : 3;
    const std::string why = thrown_by<Error>([&] {
      world.group.gather(root, bytes_in(own), bytes_in(all), kAMinute);
      world.group.barrier(kAMinute);
    });
    EXPECT_NE(why.find("gather of 8 bytes to rank 0"), std::string::npos) << why;
    EXPECT_NE(why.find("gather of 8 bytes to rank 3"), std::string::npos) << why;
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, ARankIsLost_TheOthersFailAndNameIt) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    world.group.barrier(kAMinute);
    if (port.rank() == 1) return;  // leaves the fabric
    const std::string why = thrown_by<Error>(
        [&] {
          for (;;) world.group.barrier(kAMinute);
        },
        WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(why.find("rank 1 has left the fabric"), std::string::npos) << why;
  });
}

TEST(Communicator, ARankDoesNotCome_TimeoutAndTheOthersLearnOfIt) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    if (port.rank() == 0) {
      EXPECT_EQ(thrown_by<Error>([&] { world.group.barrier(kShortPatience); }, WEIR_STATUS_TIMEOUT),
                "barrier failed: not all ranks have called it in time");
    }
    EXPECT_TRUE(port.barrier(kAMinute).ok());
    const std::string why =
        thrown_by<Error>([&] { world.group.barrier(kAMinute); }, WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(why.find("not all ranks have called it in time"), std::string::npos) << why;
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, ARankRevokesIt_AllFailAndShrinkIt) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    if (port.rank() == 1) world.group.revoke();
    const std::string why =
        thrown_by<Error>([&] { world.group.barrier(kAMinute); }, WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(why.find("the program has revoked the communicator"), std::string::npos) << why;
    Communicator::Part part;
    world.group.shrink(port.rank() * 1000 + 1, kAMinute, part);
    EXPECT_EQ(part.ranks, all_of(port));
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, ARankMakesItAfterItsFailure_ItsFirstOperationFails) {
  InprocHub hub(2, 0);
  hub.report_stalls();  // no probes
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    CollectiveHub groups(port);
    std::optional<Communicator> group;
    if (port.rank() == 0) group.emplace(groups, 0, all_of(port)).revoke();
    EXPECT_TRUE(port.barrier(kAMinute).ok());
    if (port.rank() == 1) group.emplace(groups, 0, all_of(port));
    const std::string why =
        thrown_by<Error>([&] { group->barrier(20 * kShortPatience); }, WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(why.find("the program has revoked the communicator"), std::string::npos) << why;
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, ShrinkTimesOut_TheNextCallContinues) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    Communicator::Part part;
    if (port.rank() == 0) {
      EXPECT_EQ(thrown_by<Error>([&] { world.group.shrink(1, kShortPatience, part); },
                                 WEIR_STATUS_TIMEOUT),
                "not all ranks that are left have called shrink in time");
    }
    EXPECT_TRUE(port.barrier(kAMinute).ok());
    world.group.shrink(port.rank() * 1000 + 2, kAMinute, part);
    EXPECT_EQ(part.number, 1u);
    EXPECT_EQ(part.ranks, all_of(port));
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, SizesOfAPartDiffer_TheReceiverNamesBoth) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    const std::size_t bytes = port.rank() == 0 ? 8 : 16;
    std::vector<std::byte> sent(16), received(16);
    const std::vector<std::span<const std::byte>> out(2, std::span(sent).first(8));
    std::vector<std::span<std::byte>> in(2, std::span(received).first(bytes));
    in[port.rank()] = std::span(received).first(8);
    const std::string why = thrown_by<Error>([&] {
      world.group.all_to_all(out, in, kAMinute);
      world.group.barrier(kAMinute);
    });
    EXPECT_NE(why.find("rank 0 has sent 8 bytes to rank 1, which expects 16"), std::string::npos)
        << why;
    EXPECT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(Communicator, RootFarAhead_WaitsUntilTheOthersConsume) {
  constexpr std::size_t kMiB = 1u << 20;
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    std::vector<std::byte> data(kMiB);
    const std::int64_t patience = port.rank() == 0 ? kShortPatience : kAMinute;
    if (port.rank() == 1) {
      const auto other_failed = [&] { return !port.alive(0); };
      port.wait_until(other_failed, kAMinute, "the other rank to leave");
      return;
    }
    int sent = 0;
    EXPECT_EQ(
        thrown_by<Error>(
            [&] {
              for (;; ++sent) world.group.broadcast(0, data, patience);
            },
            WEIR_STATUS_TIMEOUT),
        "broadcast of 1048576 bytes from rank 0 failed: not all ranks have called it in time");
    EXPECT_GE(sent, 15);
    EXPECT_LE(sent, 20);
  });
}

// Each rank in turn leaves, at different times; those that are left go on with a group of their
// own.
TEST(Communicator, RanksAreLost_SurvivorsShrinkTheGroupAndGoOn) {
  constexpr Rank kRanks = 5;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    InprocHub hub(kRanks, 0);
    on_ranks(hub, kRanks, ProgressBy::hybrid, [&](Port& port) {
      World world(port);
      std::mt19937 random(seed);
      std::vector<Rank> leavers = all_of(port);
      std::shuffle(leavers.begin(), leavers.end(), random);
      std::unique_ptr<Communicator> own;
      Communicator* group = &world.group;
      std::uint32_t made = 0;
      for (int round = 0; round + 1 < static_cast<int>(kRanks); ++round) {
        if (leavers[static_cast<std::size_t>(round)] == port.rank()) return;
        for (bool works = false; !works;) {
          const std::string why = thrown_by<Error>([&] {
            for (;;) run_step(*group, seed, random_step(random, group->size()));
          });
          EXPECT_FALSE(why.empty());
          Communicator::Part part;
          group->shrink(port.rank() * 1000 + ++made, kAMinute, part);
          own = std::make_unique<Communicator>(world.hub, part.number, part.ranks);
          group = own.get();
          works = std::none_of(leavers.begin(), leavers.begin() + round + 1, [&](Rank lost) {
            return std::count(part.ranks.begin(), part.ranks.end(), lost) > 0;
          });
        }
        random.seed(seed + static_cast<std::uint32_t>(round));
        EXPECT_EQ(group->size(), kRanks - 1 - static_cast<unsigned>(round));
        run_program(*group, seed, 10);
      }
    });
  }
}

TEST(Communicator, EachOperationAndType_CombinesAsDefined) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::hybrid, [&](Port& port) {
    World world(port);
    const auto result = [&](std::uint8_t mine, weir_fabric_op op) {
      std::vector<std::uint8_t> values(1, mine);
      world.group.reduce(Communicator::kAllRanks, numbers_in(values, WEIR_NUMBER_UINT8, op),
                         kAMinute);
      return values[0];
    };
    const auto mine = static_cast<std::uint8_t>(100 + port.rank());  // 100, 101, 102
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_SUM), 303 % 256);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_PRODUCT), 100 * 101 * 102 % 256);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_MIN), 100);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_MAX), 102);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_AND), 100 & 101 & 102);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_OR), 100 | 101 | 102);
    EXPECT_EQ(result(mine, WEIR_FABRIC_OP_XOR), 100 ^ 101 ^ 102);
  });
}

/// Functions x -> factor x + summand, one after the other: which comes first matters.
struct Affine {
  std::uint32_t factor = 1, summand = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
  Affine then(const Affine& next) const {
    return {factor * next.factor, summand * next.factor + next.summand};
  }
};

Affine affine_of(unsigned rank, std::size_t i) {
  return {static_cast<std::uint32_t>(2 * i + 3 + rank), static_cast<std::uint32_t>(i + 7 * rank)};
}

TEST(Communicator, FunctionThatDoesNotCommute_CombinesInTheOrderOfTheRanks) {
  weir_reduction reduction = WEIR_REDUCTION_INIT;
  reduction.size = sizeof(Affine);
  reduction.combine = [](void* into, const void* values, std::size_t count, void*) {
    auto* const left = static_cast<Affine*>(into);
    const auto* const right = static_cast<const Affine*>(values);
    for (std::size_t i = 0; i < count; ++i) left[i] = left[i].then(right[i]);
  };
  for (const std::size_t count : {std::size_t{5}, std::size_t{10'000}}) {
    InprocHub hub(4, 0);
    on_ranks(hub, 4, ProgressBy::hybrid, [&](Port& port) {
      World world(port);
      std::vector<Affine> own(count), expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        own[i] = affine_of(port.rank(), i);
        for (unsigned rank = 0; rank < 4; ++rank) {
          expected[i] = expected[i].then(affine_of(rank, i));
        }
      }
      world.group.reduce(Communicator::kAllRanks, numbers_at(own.data(), count, reduction),
                         kAMinute);
      EXPECT_EQ(own, expected);
    });
  }
}

TEST(Combine, BitsOfFloatingPointNumbers_AreRefused) {
  std::vector<double> values(1);
  EXPECT_EQ(thrown_by<Error>([&] { numbers_in(values, WEIR_NUMBER_DOUBLE, WEIR_FABRIC_OP_AND); },
                             WEIR_STATUS_INVALID_ARGUMENT),
            "and, or and xor are for integers, not for floating-point numbers");
}

TEST(NumberSet, RangesThatMeet_AreJoined) {
  NumberSet set;
  for (const std::uint32_t number : {5u, 3u, 4u, 9u, 0u}) set.insert(number);
  for (std::uint32_t number = 0; number < 12; ++number) {
    const bool is_in = number == 0 || (number >= 3 && number <= 5) || number == 9;
    EXPECT_EQ(set.contains(number), is_in) << number;
  }
}

}  // namespace
}  // namespace weir::rt
