// Collective operations without waiting threads: random programs, wrong calls, refusals, losses.
#include "fabric/collective_schedule.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.hpp"
#include "runtime/reduction.hpp"

namespace weir::rt {
namespace {

using test::all_of;
using test::kAMinute;
using test::on_ranks;

struct CollectiveGroup {
  explicit CollectiveGroup(Port& port)
      : hub(port, Channel::message, GroupHub::Numbering::given),
        messages(std::make_shared<TaggedMessages>(hub, 0, all_of(port))) {}
  ~CollectiveGroup() { messages.reset(); }

  GroupHub hub;
  std::shared_ptr<TaggedMessages> messages;
};

/// One operation of a program, the same on all ranks.
struct PlannedCollective {
  Collective what;
  std::uint32_t root;
  std::size_t count;  ///< of numbers in `own`
};

double value_at(std::size_t operation, unsigned rank, std::size_t at) {
  return 0.1 * static_cast<double>(operation + 1) + 1.7 * rank + static_cast<double>(at % 1000);
}

/// An operation on one rank, with its memory.
class CollectiveOperation final : public ScheduledCollective {
 public:
  CollectiveOperation(CollectiveGroup& group, GroupPosition at, const PlannedCollective& planned,
                      std::uint32_t number, bool combines = true)
      : ScheduledCollective(group.messages, schedule_of(planned, at, combines), number),
        own(planned.count),
        all(planned.count * at.size),
        scratch(schedule_of(planned, at, true).scratch_bytes / sizeof(double)) {}

  void start() { ScheduledCollective::start({bytes(own), bytes(all), bytes(scratch)}); }
  void await(Port& port) {
    ASSERT_TRUE(port.wait_until([this] { return is_done.load(); }, kAMinute, "a collective"));
  }

  std::vector<double> own, all, scratch;
  Outcome outcome;

 private:
  void done(const Outcome& how) noexcept override {
    outcome = {how.status, how.message};
    is_done.store(true);
  }
  static std::byte* bytes(std::vector<double>& values) {
    return reinterpret_cast<std::byte*>(values.data());
  }
  static CollectiveSchedule schedule_of(const PlannedCollective& planned, GroupPosition at,
                                        bool combines) {
    CollectiveSchedule schedule = schedule_of(planned, at);
    if (!combines) schedule.combine = [](auto&&...) { throw std::runtime_error("no sums today"); };
    return schedule;
  }
  static CollectiveSchedule schedule_of(const PlannedCollective& planned, GroupPosition at) {
    const std::size_t size = planned.count * sizeof(double);
    switch (planned.what) {
      case Collective::broadcast: return schedule_broadcast(at, planned.root, size);
      case Collective::gather: return schedule_gather(at, planned.root, size);
      case Collective::scatter: return schedule_scatter(at, planned.root, size);
      case Collective::all_to_all: return schedule_all_to_all(at, size);
      default: return schedule_reduction(at, planned.root, size, sum());
    }
  }
  static Numbers sum() {
    const weir_reduction reduction = WEIR_REDUCTION_INIT;  // a sum of doubles
    return numbers_at(nullptr, 0, reduction);
  }

  sys::Atomic<bool> is_done{false};
};

std::vector<PlannedCollective> plan_collectives(unsigned ranks, std::uint32_t seed) {
  constexpr Collective kOperations[] = {Collective::broadcast, Collective::gather,
                                        Collective::scatter, Collective::all_to_all,
                                        Collective::reduce};
  constexpr std::size_t kCounts[] = {0, 1, 2, 5, 1000, 2048, 2049, 80'000};
  std::mt19937 random(seed);
  std::vector<PlannedCollective> all;
  for (int i = 0; i < 20; ++i) {
    PlannedCollective one{kOperations[random() % std::size(kOperations)],
                          static_cast<std::uint32_t>(random() % ranks),
                          kCounts[random() % std::size(kCounts)]};
    const bool may_be_all = one.what == Collective::gather || one.what == Collective::reduce;
    if (may_be_all && random() % 2 == 0) one.root = CollectiveCall::kAllRanks;
    if (one.what == Collective::all_to_all) one.count *= ranks;
    all.push_back(one);
  }
  return all;
}

/// What a rank has before an operation, where it has something.
void fill_memory(CollectiveOperation& operation, const PlannedCollective& planned,
                 std::size_t number, GroupPosition at) {
  for (std::size_t i = 0; i < planned.count; ++i) operation.own[i] = value_at(number, at.rank, i);
  if (planned.what != Collective::scatter) return;
  std::fill(operation.own.begin(), operation.own.end(), -1.0);
  for (std::size_t i = 0; i < operation.all.size(); ++i) {
    operation.all[i] = value_at(number, planned.root, i);
  }
}

/// Compares what a rank has after an operation with what sequential code would compute.
void check_memory(const CollectiveOperation& operation, const PlannedCollective& planned,
                  std::size_t number, GroupPosition at) {
  const bool receives = planned.root == CollectiveCall::kAllRanks || planned.root == at.rank;
  const std::size_t count = planned.count, part = count / at.size;
  switch (planned.what) {
    case Collective::broadcast:
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(operation.own[i], value_at(number, planned.root, i));
      }
      break;
    case Collective::gather:
      for (std::size_t i = 0; receives && i < operation.all.size(); ++i) {
        ASSERT_EQ(operation.all[i], value_at(number, static_cast<unsigned>(i / count), i % count));
      }
      break;
    case Collective::scatter:
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(operation.own[i], value_at(number, planned.root, at.rank * count + i));
      }
      break;
    case Collective::all_to_all:
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(operation.all[i],
                  value_at(number, static_cast<unsigned>(i / part), at.rank * part + i % part));
      }
      break;
    default:
      for (std::size_t i = 0; receives && i < count; ++i) {
        double sum = value_at(number, 0, i);  // in the order of the ranks
        for (unsigned rank = 1; rank < at.size; ++rank) sum += value_at(number, rank, i);
        ASSERT_EQ(operation.own[i], sum);
      }
  }
}

/// Begins the operations of a program in an order of the rank's own.
void run_program(Port& port, std::uint32_t seed) {
  CollectiveGroup group(port);
  const GroupPosition at{port.rank(), port.ranks()};
  const std::vector<PlannedCollective> planned = plan_collectives(at.size, seed);
  std::list<CollectiveOperation> operations;
  std::vector<CollectiveOperation*> order;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    order.push_back(&operations.emplace_back(group, at, planned[i], static_cast<std::uint32_t>(i)));
    fill_memory(*order.back(), planned[i], i, at);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(seed + at.rank));
  for (CollectiveOperation* const operation : order) {
    operation->start();
    port.progress();
  }
  std::size_t number = 0;
  for (CollectiveOperation& operation : operations) {
    operation.await(port);
    ASSERT_TRUE(operation.outcome.ok()) << operation.outcome.message;
    check_memory(operation, planned[number], number, at);
    ++number;
  }
  ASSERT_TRUE(port.barrier(kAMinute).ok());
}

TEST(CollectiveSchedule, RandomPrograms_EqualSequentialCode) {
  for (unsigned ranks = 1; ranks <= 5; ++ranks) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      InprocHub hub(ranks, seed);
      on_ranks(hub, ranks, ProgressBy::caller, [&](Port& port) { run_program(port, seed); });
    }
  }
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) { run_program(port, 9); });
}

TEST(CollectiveSchedule, RanksCallDifferentOperations_AllFailAndSaySo) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{9000}}) {
    InprocHub hub(3, 0);
    on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) {
      CollectiveGroup group(port);
      const GroupPosition at{port.rank(), port.ranks()};
      const PlannedCollective wrong{Collective::broadcast, 0, count};
      const PlannedCollective right{Collective::reduce, CollectiveCall::kAllRanks, count};
      CollectiveOperation operation(group, at, at.rank == 0 ? wrong : right, 0);
      operation.start();
      operation.await(port);
      if (at.rank != 0) {
        EXPECT_EQ(operation.outcome.status, WEIR_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(operation.outcome.message.find("all ranks must call the same"), std::string::npos)
            << operation.outcome.message;
      }
      ASSERT_TRUE(port.barrier(kAMinute).ok());
      CollectiveOperation next(group, at, right, 1);
      next.start();
      next.await(port);
      EXPECT_EQ(next.outcome.status, WEIR_STATUS_INVALID_ARGUMENT);
      ASSERT_TRUE(port.barrier(kAMinute).ok());
    });
  }
}

TEST(CollectiveSchedule, OneRankRefuses_TheOthersFailWithItsReason) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    InprocHub hub(3, 0);
    on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) {
      CollectiveGroup group(port);
      const GroupPosition at{port.rank(), port.ranks()};
      CollectiveOperation operation(group, at,
                                    {Collective::reduce, CollectiveCall::kAllRanks, count}, 0);
      if (at.rank == 1) {
        operation.refuse("no data");
      } else {
        operation.start();
        operation.await(port);
        EXPECT_EQ(operation.outcome.status, WEIR_STATUS_NETWORK_ERROR);
        EXPECT_NE(operation.outcome.message.find("no data"), std::string::npos)
            << operation.outcome.message;
      }
      ASSERT_TRUE(port.barrier(kAMinute).ok());
      CollectiveOperation next(group, at, {Collective::reduce, CollectiveCall::kAllRanks, count},
                               1);
      next.start();
      next.await(port);
      EXPECT_TRUE(next.outcome.ok()) << next.outcome.message;
      ASSERT_TRUE(port.barrier(kAMinute).ok());
    });
  }
}

/// Of many numbers each rank combines a part, which the others get in the next round.
TEST(CollectiveSchedule, CombinationOfARankFails_TheOthersFailWithItsReason) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) {
    CollectiveGroup group(port);
    const GroupPosition at{port.rank(), port.ranks()};
    CollectiveOperation operation(
        group, at, {Collective::reduce, CollectiveCall::kAllRanks, 100'000}, 0, at.rank != 1);
    operation.start();
    operation.await(port);
    EXPECT_EQ(operation.outcome.status,
              at.rank == 1 ? WEIR_STATUS_KERNEL_ERROR : WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(operation.outcome.message.find("no sums today"), std::string::npos)
        << operation.outcome.message;
    ASSERT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(CollectiveSchedule, RankLeaves_OperationsOfTheOthersFail) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) {
    std::optional<CollectiveGroup> group(port);
    const GroupPosition at{port.rank(), port.ranks()};
    ASSERT_TRUE(port.barrier(kAMinute).ok());
    if (at.rank == 2) return group.reset();
    CollectiveOperation operation(*group, at, {Collective::reduce, CollectiveCall::kAllRanks, 1},
                                  0);
    operation.start();
    operation.await(port);
    EXPECT_EQ(operation.outcome.status, WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(operation.outcome.message.find("rank 2 has "), std::string::npos)
        << operation.outcome.message;
  });
}

}  // namespace
}  // namespace weir::rt
