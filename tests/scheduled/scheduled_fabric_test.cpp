// The order in which the ranks of one process get messages: one seed of delivery is one order,
// whatever the schedule of the threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/fabric.hpp"
#include "scheduler.hpp"
#include "schedules.hpp"

namespace weir::rt {
namespace {

constexpr Rank kRanks = 3;
constexpr int kStarted = 2, kHops = 2;

/// What a rank has heard, and what it has seen, in order.
struct Heard {
  weir_fabric* fabric;
  std::string text;
  int messages = 0;
};

/// Sends it on to the next rank, if it has some way to go.
void hear(unsigned from, const void* message, std::size_t, void* payload) {
  Heard& heard = *static_cast<Heard*>(payload);
  const auto left = static_cast<const char*>(message)[0];
  heard.text += fmt::format("{}{}", static_cast<char>('a' + from), left);
  ++heard.messages;
  if (left == '0') return;
  const char next = static_cast<char>(left - 1);
  const Rank to = (heard.fabric->port().rank() + 1) % kRanks;
  heard.fabric->send(to, std::as_bytes(std::span(&next, 1)));
}

/// Each message makes its way round the ranks; those that come before a handler are kept.
void pass_messages(weir_fabric& fabric, std::string& text, bool listens_early, bool polls) {
  Heard heard{&fabric, {}};
  const Rank rank = fabric.port().rank();
  if (listens_early) fabric.listen(hear, &heard);
  const char first = '0' + kHops;
  for (int i = 0; i < kStarted; ++i) {
    for (Rank to = 0; to < kRanks; ++to) {
      if (to != rank) fabric.send(to, std::as_bytes(std::span(&first, 1)));
    }
  }
  if (!listens_early) fabric.listen(hear, &heard);
  // Of all messages a rank gets as many as every other one.
  while (heard.messages < kStarted * int(kRanks - 1) * (kHops + 1)) {
    if (!fabric.progress(polls ? 0 : -1)) heard.text += '.';
  }
  fabric.barrier(-1);
  fabric.listen(nullptr, nullptr);
  text = heard.text;
}

std::vector<std::string> order(std::uint64_t seed, std::uint64_t schedule, bool listens_early,
                               bool polls) {
  std::vector<std::string> heard(kRanks);
  schedule::Options options;
  options.seed = schedule;
  options.strategy = schedule::strategy_of(schedule);
  schedule::run(options, [&] {
    weir_fabric_options given = WEIR_FABRIC_OPTIONS_INIT;
    given.seed = seed;
    simulate_fabric(given, kRanks, [&](weir_fabric& fabric) {
      pass_messages(fabric, heard[fabric.port().rank()], listens_early, polls);
    });
  });
  return heard;
}

TEST(ScheduledFabric, ASeedIsOneOrderOnAllSchedules) {
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

}  // namespace
}  // namespace weir::rt
