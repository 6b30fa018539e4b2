// Messages of a fabric whose other ranks have left, and those whose order a seed decides.
#include <weir/fabric.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <weir/weir.hpp>

#include "fleet.hpp"

namespace weir {
namespace {

constexpr std::int64_t kLonely = 100'000'000'000;

/// A handler that is at work, on a thread of the fabric, when its rank polls for messages.
struct Receiving {
  const std::thread::id program = std::this_thread::get_id();
  std::atomic<bool> begun{false}, asked{false};
  int received = 0;
};

void receive_slowly(unsigned, const void*, std::size_t, void* payload) {
  Receiving& receiving = *static_cast<Receiving*>(payload);
  receiving.begun = true;
  if (std::this_thread::get_id() != receiving.program) {
    while (!receiving.asked) std::this_thread::yield();
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
  }
  ++receiving.received;
}

void receive_own_message(weir_fabric* fabric) {
  EXPECT_EQ(weir_fabric_barrier(fabric, WEIR_FOREVER), WEIR_STATUS_OK);
  if (weir_fabric_rank(fabric) == 1) return;
  Receiving receiving;
  EXPECT_EQ(weir_fabric_listen(fabric, receive_slowly, &receiving), WEIR_STATUS_OK);
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_NETWORK_ERROR);
  EXPECT_EQ(weir_fabric_send(fabric, 0, nullptr, 0), WEIR_STATUS_OK);
  while (!receiving.begun) std::this_thread::yield();
  receiving.asked = true;
  EXPECT_EQ(weir_fabric_progress(fabric, kLonely), WEIR_STATUS_OK) << weir_last_error();
  EXPECT_EQ(weir_fabric_listen(fabric, nullptr, nullptr), WEIR_STATUS_OK);
  EXPECT_EQ(receiving.received, 1);
}

TEST(Fabrics, AllOtherRanksHaveLeft_OwnMessagesAreStillReceived) {
  on_two_ranks(receive_own_message);
}

TEST(Fabrics, RankReturnsWithItsRuntimeOpen_CollectivesOfOthersFail) {
  for (const bool closes : {false, true}) {
    std::optional<Runtime> left_behind;
    on_two_ranks([&](weir_fabric* fabric) {
      if (weir_fabric_rank(fabric) == 1) {
        weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
        options.domains = "null";
        options.fabric = fabric;
        left_behind.emplace(options);
        if (closes) weir_fabric_close(fabric);
        return;
      }
      std::int64_t one = 1;
      EXPECT_EQ(weir_fabric_reduce_int64(fabric, &one, 1, WEIR_FABRIC_OP_SUM, kLonely),
                WEIR_STATUS_NETWORK_ERROR);
      EXPECT_STREQ(
          weir_last_error(),
          "sum of 1 int64 to all ranks failed: rank 1 has ended without closing the fabric");
    });
  }
}

// ---- The order that a seed decides --------------------------------------------------------------

constexpr unsigned kTalkers = 4;

/// What one rank receives, and what else it sees of the others, in order.
struct Story {
  weir_fabric* fabric = nullptr;
  std::string text;
  unsigned messages = 0;
};

/// Threads run at other times in each run.
void perturb() {
  thread_local std::minstd_rand random(std::random_device{}());
  if (random() % 8 == 0) std::this_thread::yield();
}

/// Passes a message on to the next rank until it has made its way.
void forward_message(unsigned from, const void* message, std::size_t, void* payload) {
  Story& story = *static_cast<Story*>(payload);
  const char left = *static_cast<const char*>(message);
  story.text += static_cast<char>('a' + from);
  story.text += left;
  ++story.messages;
  perturb();
  if (left == '0') return;
  const char next = static_cast<char>(left - 1);
  const unsigned to = (weir_fabric_rank(story.fabric) + 1) % kTalkers;
  EXPECT_EQ(weir_fabric_send(story.fabric, to, &next, 1), WEIR_STATUS_OK);
}

/// Sends everything, some of it to be passed on, and then listens.
void send_before_listening(Story& story) {
  const unsigned rank = weir_fabric_rank(story.fabric);
  for (const char left : {'0', '2', '0'}) {
    for (unsigned to = 0; to < kTalkers; ++to) {
      if (to == rank) continue;
      perturb();
      EXPECT_EQ(weir_fabric_send(story.fabric, to, &left, 1), WEIR_STATUS_OK);
    }
  }
  EXPECT_EQ(weir_fabric_listen(story.fabric, forward_message, &story), WEIR_STATUS_OK);
  while (story.messages < 5 * (kTalkers - 1)) {
    EXPECT_EQ(weir_fabric_progress(story.fabric, WEIR_FOREVER), WEIR_STATUS_OK);
  }
}

/// Listens at once, only polls for messages, and takes tickets of rank 0 meanwhile.
void poll_and_take_tickets(Story& story) {
  const unsigned rank = weir_fabric_rank(story.fabric);
  EXPECT_EQ(weir_fabric_listen(story.fabric, forward_message, &story), WEIR_STATUS_OK);
  const Window<std::int64_t> counter(story.fabric, rank == 0 ? 1 : 0);
  for (const char left : {'3', '0'}) {
    perturb();
    EXPECT_EQ(weir_fabric_send(story.fabric, (rank + 1) % kTalkers, &left, 1), WEIR_STATUS_OK);
  }
  while (story.messages < kTalkers + 1) {
    const weir_status status = weir_fabric_progress(story.fabric, 0);
    if (status != WEIR_STATUS_OK) story.text += status == WEIR_STATUS_TIMEOUT ? "." : "!";
    perturb();
    story.text += "#" + std::to_string(counter.fetch_add(0, 0, 1));
  }
  EXPECT_EQ(weir_fabric_barrier(story.fabric, WEIR_FOREVER), WEIR_STATUS_OK);
}

/// Fills the way to rank 0 before that takes anything.
void send_much(Story& story) {
  const std::string much(700'000, '0');
  EXPECT_EQ(weir_fabric_listen(story.fabric, forward_message, &story), WEIR_STATUS_OK);
  for (int i = 0; i < 3 && weir_fabric_rank(story.fabric) != 0; ++i) {
    perturb();
    EXPECT_EQ(weir_fabric_send(story.fabric, 0, much.data(), much.size()), WEIR_STATUS_OK);
  }
  while (weir_fabric_rank(story.fabric) == 0 && story.messages < 3 * (kTalkers - 1)) {
    EXPECT_EQ(weir_fabric_progress(story.fabric, WEIR_FOREVER), WEIR_STATUS_OK);
  }
}

using Telling = void (*)(Story&);

std::string tell(std::uint64_t seed, Telling telling) {
  struct Stories {
    Telling telling;
    std::vector<std::string> of = std::vector<std::string>(kTalkers);
  } stories{telling};
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.seed = seed;
  const weir_fabric_program program = [](weir_fabric* fabric, void* payload) {
    Stories& all = *static_cast<Stories*>(payload);
    Story story{fabric, {}, 0};
    perturb();
    all.telling(story);
    EXPECT_EQ(weir_fabric_barrier(fabric, WEIR_FOREVER), WEIR_STATUS_OK);
    EXPECT_EQ(weir_fabric_listen(fabric, nullptr, nullptr), WEIR_STATUS_OK);
    all.of[weir_fabric_rank(fabric)] = story.text;
    return WEIR_STATUS_OK;
  };
  EXPECT_EQ(weir_fabric_simulate(&options, kTalkers, program, &stories), WEIR_STATUS_OK)
      << weir_last_error();
  std::string all;
  for (const std::string& each : stories.of) all += each + '\n';
  return all;
}

TEST(Fabrics, SameSeed_SameOrderOfMessages) {
  for (const Telling telling : {send_before_listening, poll_and_take_tickets, send_much}) {
    std::string before;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const std::string wanted = tell(seed, telling);
      for (int run = 0; run < 20; ++run) ASSERT_EQ(tell(seed, telling), wanted) << "seed " << seed;
      EXPECT_NE(wanted, before) << "seed " << seed;
      before = wanted;
    }
  }
}

TEST(Fabrics, RanksThatWaitForEachOtherWithASeed_GetADeadlockError) {
  const auto wait_for_ever = [](weir_fabric* fabric, void*) {
    return weir_fabric_rank(fabric) == 0 ? weir_fabric_barrier(fabric, WEIR_FOREVER)
                                         : weir_fabric_progress(fabric, WEIR_FOREVER);
  };
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    EXPECT_EQ(weir_fabric_simulate(&options, 2, wait_for_ever, nullptr), WEIR_STATUS_NETWORK_ERROR);
    EXPECT_STREQ(weir_last_error(),
                 "rank 0: all ranks wait for each other: rank 0 waits for a barrier, rank 1 waits "
                 "for a message");
  }
}

/// Which need a thread of the fabric.
TEST(Fabrics, RuntimeInASeededFabric_IsRefusedUnlessHybrid) {
  const auto program = [](weir_fabric* fabric, void*) {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.fabric = fabric;
    weir_runtime* made = nullptr;
    const weir_status status = weir_runtime_create(&options, &made);
    weir_runtime_destroy(made);
    return status;
  };
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.seed = 5;
  EXPECT_EQ(weir_fabric_simulate(&options, 2, program, nullptr), WEIR_STATUS_UNSUPPORTED);
  EXPECT_NE(std::string(weir_last_error()).find("set the progress to hybrid"), std::string::npos)
      << weir_last_error();
  options.progress = "hybrid";
  EXPECT_EQ(weir_fabric_simulate(&options, 2, program, nullptr), WEIR_STATUS_OK)
      << weir_last_error();
}

}  // namespace
}  // namespace weir
