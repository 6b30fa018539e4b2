// The order in which the ranks of one process get messages: one seed of delivery is one order,
// whatever the schedule of the threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fabric/collective_schedule.hpp"
#include "runtime/fabric.hpp"
#include "runtime/reduction.hpp"
#include "scheduler.hpp"
#include "schedules.hpp"

namespace weir::rt {
namespace {

constexpr Rank kRanks = 3;
constexpr int kStarted = 2, kHops = 2;

/// What a rank has received, and what it has seen, in order.
struct Received {
  weir_fabric* fabric;
  std::string text;
  int messages = 0;
};

/// Sends it on to the next rank, if it has some way to go.
void receive(unsigned from, const void* message, std::size_t, void* payload) {
  Received& received = *static_cast<Received*>(payload);
  const auto left = static_cast<const char*>(message)[0];
  received.text += fmt::format("{}{}", static_cast<char>('a' + from), left);
  ++received.messages;
  if (left == '0') return;
  const char next = static_cast<char>(left - 1);
  const Rank to = (received.fabric->port().rank() + 1) % kRanks;
  received.fabric->send(to, std::as_bytes(std::span(&next, 1)));
}

/// Each message makes its way round the ranks; those that come before a handler are kept.
void pass_messages(weir_fabric& fabric, std::string& text, bool listens_early, bool polls) {
  Received received{&fabric, {}};
  const Rank rank = fabric.port().rank();
  if (listens_early) fabric.listen(receive, &received);
  const char first = '0' + kHops;
  for (int i = 0; i < kStarted; ++i) {
    for (Rank to = 0; to < kRanks; ++to) {
      if (to != rank) fabric.send(to, std::as_bytes(std::span(&first, 1)));
    }
  }
  if (!listens_early) fabric.listen(receive, &received);
  // Of all messages a rank gets as many as every other one.
  while (received.messages < kStarted * int(kRanks - 1) * (kHops + 1)) {
    if (!fabric.progress(polls ? 0 : -1)) received.text += '.';
  }
  fabric.barrier(-1);
  fabric.listen(nullptr, nullptr);
  text = received.text;
}

std::vector<std::string> order(std::uint64_t seed, std::uint64_t schedule, bool listens_early,
                               bool polls) {
  std::vector<std::string> received(kRanks);
  schedule::Options options;
  options.seed = schedule;
  options.strategy = schedule::strategy_of(schedule);
  schedule::run(options, [&] {
    weir_fabric_options given = WEIR_FABRIC_OPTIONS_INIT;
    given.seed = seed;
    simulate_fabric(given, kRanks, [&](weir_fabric& fabric) {
      pass_messages(fabric, received[fabric.port().rank()], listens_early, polls);
    });
  });
  return received;
}

TEST(ScheduledFabric, DeliverySeed_DeterminesTheMessageOrderOnAllSchedules) {
  for (const bool early : {false, true}) {
    for (const bool polls : {false, true}) {
      std::vector<std::string> before;
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const std::vector<std::string> wanted = order(seed, 1, early, polls);
        for (std::uint64_t schedule = 2; schedule <= 20; ++schedule) {
          ASSERT_EQ(order(seed, schedule, early, polls), wanted)
              << "seed " << seed << ", schedule " << schedule;
        }
        EXPECT_NE(wanted, before);
        before = wanted;
      }
    }
  }
}

// ---- Several threads a rank ---------------------------------------------------------------------

/// Runs a program on ranks of which a seed decides the order; returns what went wrong.
std::string wrong_on(std::uint64_t schedule, Rank ranks,
                     const std::function<void(weir_fabric&)>& program) {
  std::string wrong;
  schedule::Options options;
  options.seed = schedule;
  options.strategy = schedule::strategy_of(schedule);
  schedule::run(options, [&] {
    weir_fabric_options given = WEIR_FABRIC_OPTIONS_INIT;
    given.seed = schedule;
    try {
      simulate_fabric(given, ranks, program);
    } catch (const Error& error) {
      wrong = error.what();
    }
  });
  return wrong;
}

/// Two threads of each rank take tickets of the other: each may see to the other one's answer.
void take_tickets(weir_fabric& fabric, std::int64_t& last) {
  weir_window& counter = *fabric.create_window(&last, sizeof last, -1);
  const Rank other = 1 - fabric.port().rank();
  const auto take = [&] {
    for (int i = 0; i < 3; ++i) counter.fetch_add(other, 0, 1);
  };
  {
    const sys::Thread beside("beside", take);
    take();
  }
  fabric.barrier(-1);
  fabric.destroy_window(&counter);
}

TEST(ScheduledFabric, ThreadWithUnreadReply_IsNotReportedAsDeadlock) {
  for (std::uint64_t schedule = 1; schedule <= 100; ++schedule) {
    std::int64_t taken[2] = {0, 0};
    ASSERT_EQ(
        wrong_on(schedule, 2,
                 [&](weir_fabric& fabric) { take_tickets(fabric, taken[fabric.port().rank()]); }),
        "")
        << "schedule " << schedule;
    ASSERT_EQ(taken[0] + taken[1], 12);
  }
}

TEST(ScheduledFabric, AllThreadsOfAllRanksWait_DeadlockIsReported) {
  for (std::uint64_t schedule = 1; schedule <= 20; ++schedule) {
    const std::string wrong = wrong_on(schedule, 2, [](weir_fabric& fabric) {
      sys::Thread("ended", [&] { fabric.port().progress(); }).join();
      if (fabric.port().rank() == 1) return fabric.barrier(-1);
      sys::Atomic<std::uint32_t> known{0};
      const sys::Thread beside("beside", [&] {
        fabric.port().progress();
        known.store(1);
        sys::wake_all(known);
        try {
          fabric.progress(-1);
        } catch (const Error&) {  // of the stall, as the rank's own
        }
      });
      while (known.load() == 0) sys::wait(known, 0);
      fabric.progress(-1);
    });
    ASSERT_EQ(wrong,
              "rank 0: all ranks wait for each other: rank 0 waits for a message, rank 1 waits for "
              "a barrier");
  }
}

/// The first rank waits for the second outside of the fabric, and that for a message of the third.
TEST(ScheduledFabric, RankWaitingOutsideTheFabric_DoesNotBlockDelivery) {
  sys::Atomic<std::uint32_t> received{0};
  EXPECT_EQ(wrong_on(1, 3,
                     [&](weir_fabric& fabric) {
                       const Rank rank = fabric.port().rank();
                       if (rank == 2) fabric.send(1, {});
                       if (rank == 1) {
                         Received message{&fabric, {}};
                         fabric.listen(
                             [](unsigned, const void*, std::size_t, void* count) {
                               ++static_cast<Received*>(count)->messages;
                             },
                             &message);
                         while (message.messages == 0) fabric.progress(-1);
                         received.store(1);
                         sys::wake_all(received);
                         fabric.listen(nullptr, nullptr);
                       }
                       while (rank == 0 && received.load() == 0) sys::wait(received, 0);
                       fabric.barrier(-1);
                     }),
            "");
}

// ---- Communicators ------------------------------------------------------------------------------

/// Sums a number over a group, `rounds` times.
std::int64_t sum_over(weir_communicator& group, int rounds) {
  std::int64_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    std::int64_t own = group.fabric().port().rank() + 1;
    weir_reduction reduction = WEIR_REDUCTION_INIT;
    reduction.type = WEIR_NUMBER_INT64;
    group.reduce(WEIR_ALL_RANKS, numbers_at(&own, 1, reduction), -1);
    sum += own;
  }
  return sum;
}

weir_communicator& part_of(weir_communicator& group, std::int64_t color) {
  return *group.fabric().create_communicator(group,
                                             [&](std::uint32_t number, Communicator::Part& part) {
                                               group.split({color, 0, number}, -1, part);
                                             });
}

/// Ranks 0 to 3 form two rows and two columns; a thread of each rank works in its row while another
/// one works in its column.
TEST(ScheduledFabric, ThreadsInDifferentCommunicators_GetTheResultsOfTheirs) {
  for (std::uint64_t schedule = 1; schedule <= 60; ++schedule) {
    std::int64_t in_row[4] = {}, in_column[4] = {};
    ASSERT_EQ(wrong_on(schedule, 4,
                       [&](weir_fabric& fabric) {
                         const Rank rank = fabric.port().rank();
                         weir_communicator& row = part_of(fabric.communicator(), rank / 2);
                         weir_communicator& column = part_of(fabric.communicator(), rank % 2);
                         {
                           const sys::Thread beside("beside",
                                                    [&] { in_column[rank] = sum_over(column, 2); });
                           in_row[rank] = sum_over(row, 2);
                         }
                         fabric.barrier(-1);
                       }),
              "")
        << "schedule " << schedule;
    for (int rank = 0; rank < 4; ++rank) {
      ASSERT_EQ(in_row[rank], rank < 2 ? 6 : 14);
      ASSERT_EQ(in_column[rank], rank % 2 == 0 ? 8 : 12);
    }
  }
}

/// Rank 2 leaves at any moment of the sums of the others, which then go on without it.
TEST(ScheduledFabric, RankLeavesDuringReductions_TheOthersShrinkAndGoOn) {
  for (std::uint64_t schedule = 1; schedule <= 60; ++schedule) {
    std::int64_t sums[3] = {};
    ASSERT_EQ(wrong_on(schedule, 3,
                       [&](weir_fabric& fabric) {
                         const Rank rank = fabric.port().rank();
                         if (rank == 2)
                           return static_cast<void>(sum_over(fabric.communicator(), 1));
                         try {
                           for (;;) sum_over(fabric.communicator(), 1);
                         } catch (const Error& error) {
                           ASSERT_EQ(error.status(), WEIR_STATUS_NETWORK_ERROR) << error.what();
                         }
                         weir_communicator& left = *fabric.create_communicator(
                             fabric.communicator(),
                             [&](std::uint32_t number, Communicator::Part& part) {
                               fabric.communicator().shrink(number, -1, part);
                             });
                         ASSERT_EQ(left.size(), 2u);
                         sums[rank] = sum_over(left, 1);
                       }),
              "")
        << "schedule " << schedule;
    ASSERT_EQ(sums[0], 3);
    ASSERT_EQ(sums[1], 3);
  }
}

// ---- Collective operations without waiting threads ----------------------------------------------

/// A sum over all ranks of a group, begun by the constructor.
class SumInProgress final : public ScheduledCollective {
 public:
  SumInProgress(weir_communicator& group, double value)
      : ScheduledCollective(group.messages(), schedule_of(group), group.next_collective()),
        sum(value),
        port_(group.fabric().port()),
        scratch_(group.size()) {
    start({reinterpret_cast<std::byte*>(&sum), nullptr,
           reinterpret_cast<std::byte*>(scratch_.data())});
  }
  /// Returns whether it has failed.
  bool await() {
    port_.wait_until([this] { return is_done_.load(); }, -1, "a sum");
    return failed_;
  }

  double sum;

 private:
  static CollectiveSchedule schedule_of(const weir_communicator& group) {
    const weir_reduction reduction = WEIR_REDUCTION_INIT;
    return schedule_reduction({group.rank(), group.size()}, CollectiveCall::kAllRanks,
                              sizeof(double), numbers_at(nullptr, 0, reduction));
  }
  void done(const Outcome& outcome) noexcept override {
    failed_ = !outcome.ok();
    is_done_.store(true);
  }

  Port& port_;
  std::vector<double> scratch_;
  bool failed_ = false;
  sys::Atomic<bool> is_done_{false};
};

/// Sums that a rank begins on two threads, while messages arrive on a third one.
TEST(ScheduledFabric, CollectivesInProgress_GetTheirResults) {
  for (std::uint64_t schedule = 1; schedule <= 60; ++schedule) {
    double sums[3][2] = {};
    ASSERT_EQ(wrong_on(schedule, 3,
                       [&](weir_fabric& fabric) {
                         const Rank rank = fabric.port().rank();
                         weir_communicator& all = fabric.communicator();
                         weir_communicator& other = part_of(all, 0);
                         {
                           const sys::Thread beside("beside", [&] {
                             SumInProgress sum(other, 10.0 * (rank + 1));
                             sums[rank][1] = sum.await() ? -1 : sum.sum;
                           });
                           SumInProgress first(all, rank + 1), second(all, rank + 6);
                           ASSERT_FALSE(second.await());
                           ASSERT_EQ(second.sum, 21);
                           sums[rank][0] = first.await() ? -1 : first.sum;
                         }
                         fabric.barrier(-1);
                       }),
              "")
        << "schedule " << schedule;
    for (const auto& [own, beside] : sums) {
      ASSERT_EQ(own, 6);
      ASSERT_EQ(beside, 60);
    }
  }
}

/// Rank 2 leaves at any moment of a sum: it has its result, or has failed.
TEST(ScheduledFabric, RankLeavesDuringACollective_ItEndsOnTheOthers) {
  for (std::uint64_t schedule = 1; schedule <= 60; ++schedule) {
    ASSERT_EQ(wrong_on(schedule, 3,
                       [&](weir_fabric& fabric) {
                         const Rank rank = fabric.port().rank();
                         SumInProgress sum(fabric.communicator(), rank + 1);
                         ASSERT_TRUE(sum.await() || sum.sum == 6);
                         if (rank == 2) return;
                         SumInProgress later(fabric.communicator(), rank + 1);
                         ASSERT_TRUE(later.await());
                       }),
              "")
        << "schedule " << schedule;
  }
}

}  // namespace
}  // namespace weir::rt
