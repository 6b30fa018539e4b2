// The order in which the ranks of one process get messages: one seed of delivery is one order,
// whatever the schedule of the threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/fabric.hpp"
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

}  // namespace
}  // namespace weir::rt
