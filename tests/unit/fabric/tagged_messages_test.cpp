// Numbered messages: matching, short and long, refusals, losses.
#include "fabric/tagged_messages.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace weir::rt {
namespace {

using test::all_of;
using test::kAMinute;
using test::on_ranks;
using test::on_sharing_ranks;

/// A send or receive of contiguous numbers, or of every second one.
struct Operation final : TaggedMessages::Operation {
  std::vector<std::uint32_t> numbers;
  sys::Atomic<bool> is_done{false};
  Outcome outcome;

  Operation(unsigned with, TaggedMessages::Key its_key, std::size_t count, std::uint32_t value = 0,
            bool with_gaps = false)
      : numbers(with_gaps ? 2 * count : count, value) {
    peer = with;
    key = its_key;
    memory = {.first = reinterpret_cast<std::byte*>(numbers.data()), .row_bytes = 4 * count};
    if (with_gaps) {
      memory.row_bytes = 4;
      memory.rows = count;
      memory.row = 8;
    }
  }
  void done(const Outcome& how) noexcept override {
    outcome = how;
    is_done.store(true);
  }
  void await(Port& port) {
    ASSERT_TRUE(port.wait_until([this] { return is_done.load(); }, kAMinute, "a message"));
  }
};

struct Group {
  explicit Group(Port& port)
      : hub(port, Channel::message, GroupHub::Numbering::given), messages(hub, 0, all_of(port)) {}

  GroupHub hub;
  TaggedMessages messages;
};

struct Planned {
  unsigned from, to;
  TaggedMessages::Key key;
  std::size_t count;
  bool sends_gaps, receives_gaps;
};

/// Messages between all ranks, of all sizes; those of one sender, receiver and tag are numbered.
std::vector<Planned> plan(unsigned ranks, std::uint32_t seed) {
  constexpr std::size_t kCounts[] = {1, 3, 1000, 4095, 4096, 4097, 100'000};
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::map<std::pair<std::pair<unsigned, unsigned>, std::uint32_t>, std::uint32_t> numbers;
  std::vector<Planned> all;
  for (int i = 0; i < 200; ++i) {
    Planned one{random() % ranks,  random() % ranks, {}, kCounts[random() % std::size(kCounts)],
                random() % 2 == 0, random() % 2 == 0};
    one.key.tag = random() % 3;
    one.key.number = numbers[{{one.from, one.to}, one.key.tag}]++;
    all.push_back(one);
  }
  return all;
}

/// Begins the messages of a rank in an order of its own, and checks what it has received.
void exchange(Port& port, std::uint32_t seed) {
  Group group(port);
  const std::vector<Planned> planned = plan(port.ranks(), seed);
  std::vector<std::pair<std::size_t, bool>> order;  // index in the plan, and whether it is a send
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].from == port.rank()) order.emplace_back(i, true);
    if (planned[i].to == port.rank()) order.emplace_back(i, false);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937(seed + port.rank()));
  std::list<Operation> operations;
  for (const auto& [index, sends] : order) {
    const Planned& one = planned[index];
    const auto value = static_cast<std::uint32_t>(index + 1);
    Operation& operation =
        operations.emplace_back(sends ? one.to : one.from, one.key, one.count, sends ? value : 0,
                                sends ? one.sends_gaps : one.receives_gaps);
    sends ? group.messages.send(operation) : group.messages.receive(operation);
    port.progress();
  }
  auto operation = operations.begin();
  for (const auto& [index, sends] : order) {
    operation->await(port);
    ASSERT_TRUE(operation->outcome.ok()) << operation->outcome.message;
    const std::size_t step = planned[index].receives_gaps ? 2 : 1;
    for (std::size_t i = 0; !sends && i < operation->numbers.size(); ++i) {
      ASSERT_EQ(operation->numbers[i], i % step == 0 ? index + 1 : 0) << "message " << index;
    }
    ++operation;
  }
  ASSERT_TRUE(port.barrier(kAMinute).ok());
}

TEST(TaggedMessages, RandomMessages_EachReachesItsReceive) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    InprocHub hub(3, seed);
    on_ranks(hub, 3, ProgressBy::caller, [&](Port& port) { exchange(port, seed); });
  }
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) { exchange(port, 11); });
}

TEST(TaggedMessages, SenderIsFarAhead_ItsMessagesAreNotKept) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::thread, [&](Port& port) {
    Group group(port);
    constexpr std::uint32_t kMany = 200;  // of 16 KiB: 3 MiB
    std::list<Operation> operations;
    for (std::uint32_t i = 0; i < kMany; ++i) {
      Operation& operation =
          operations.emplace_back(1 - port.rank(), TaggedMessages::Key{0, i}, 4096, i);
      if (port.rank() == 0) group.messages.send(operation);
    }
    if (port.rank() == 0) {
      const auto sent = std::count_if(operations.begin(), operations.end(),
                                      [](const Operation& each) { return each.is_done.load(); });
      EXPECT_EQ(sent, 64);  // 1 MiB
    }
    ASSERT_TRUE(port.barrier(kAMinute).ok());
    for (Operation& operation : operations) {
      if (port.rank() == 1) group.messages.receive(operation);
      operation.await(port);
      ASSERT_EQ(operation.numbers.back(), operation.key.number);
    }
    ASSERT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(TaggedMessages, OtherSizeThanExpected_ReceiveFailsAndNamesBoth) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::thread, [&](Port& port) {
    Group group(port);
    Operation operation(1 - port.rank(), {7, 0}, port.rank() == 0 ? 3 : 5);
    port.rank() == 0 ? group.messages.send(operation) : group.messages.receive(operation);
    operation.await(port);
    EXPECT_EQ(operation.outcome.message,
              port.rank() == 0 ? "" : "rank 0 has sent 12 bytes with tag 7, and 20 are expected");
    ASSERT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(TaggedMessages, OneSideRefuses_TheOtherFailsWithItsReason) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    for (const bool early : {false, true}) {
      InprocHub hub(2, 0);
      on_ranks(hub, 2, ProgressBy::thread, [&](Port& port) {
        Group group(port);
        Operation send(1, {0, 0}, count), receive(0, {1, 0}, count);
        const auto refuse = [&] {
          port.rank() == 0 ? group.messages.refuse_send(1, {1, 0}, "no data")
                           : group.messages.refuse_receive(0, {0, 0}, "no room");
        };
        if (early) refuse();
        ASSERT_TRUE(port.barrier(kAMinute).ok());
        port.rank() == 0 ? group.messages.send(send) : group.messages.receive(receive);
        ASSERT_TRUE(port.barrier(kAMinute).ok());
        if (!early) refuse();
        Operation& own = port.rank() == 0 ? send : receive;
        own.await(port);
        const bool was_sent = port.rank() == 0 && count == 1;
        EXPECT_EQ(own.outcome.message, was_sent           ? ""
                                       : port.rank() == 0 ? "rank 1: no room"
                                                          : "rank 0: no data");
        ASSERT_TRUE(port.barrier(kAMinute).ok());
      });
    }
  }
}

TEST(TaggedMessages, RankIsLost_ItsOperationsFailAndWhatItHasSentIsReceived) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::thread, [&](Port& port) {
    Group group(port);
    if (port.rank() == 2) {
      Operation sent(0, {0, 0}, 1, 5);
      group.messages.send(sent);
      ASSERT_TRUE(port.barrier(kAMinute).ok());
      return;  // leaves the fabric
    }
    Operation expected(2, {1, 0}, 1), offered(2, {1, 0}, 100'000), arrived(2, {0, 0}, 1);
    group.messages.receive(expected);
    group.messages.send(offered);
    ASSERT_TRUE(port.barrier(kAMinute).ok());
    expected.await(port);
    offered.await(port);
    // It destroys its end before it leaves.
    EXPECT_EQ(expected.outcome.message.find("rank 2 has "), 0u) << expected.outcome.message;
    EXPECT_EQ(offered.outcome.message.find("rank 2 has "), 0u) << offered.outcome.message;
    group.messages.receive(arrived);
    arrived.await(port);
    EXPECT_EQ(arrived.outcome.ok(), port.rank() == 0) << arrived.outcome.message;
    EXPECT_EQ(arrived.numbers[0], port.rank() == 0 ? 5u : 0u);
    Operation late(2, {2, 0}, 1);
    group.messages.send(late);
    EXPECT_EQ(late.outcome.message.find("rank 2 has "), 0u) << late.outcome.message;
  });
}

TEST(TaggedMessages, RankDestroysItsEnd_OperationsWithItFail) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::thread, [&](Port& port) {
    Operation expected(0, {0, 0}, 1), offered(0, {1, 0}, 100'000), late(0, {0, 1}, 1);
    std::optional<Group> group(port);
    if (port.rank() == 1) {
      group->messages.receive(expected);
      group->messages.send(offered);
    }
    ASSERT_TRUE(port.barrier(kAMinute).ok());
    if (port.rank() == 0) return group.reset();
    for (Operation* const own : {&expected, &offered}) {
      own->await(port);
      EXPECT_EQ(own->outcome.message, "rank 0 has destroyed the communicator");
    }
    group->messages.receive(late);
    EXPECT_TRUE(late.is_done.load());
  });
}

TEST(TaggedMessages, AllFailOnARank_MatchingOperationsOfTheOtherFail) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::thread, [&](Port& port) {
    Group group(port);
    const unsigned other = 1 - port.rank();
    std::list<Operation> operations;
    const auto begin = [&](std::uint32_t number) {  // short and long, to and from
      for (std::uint32_t tag = 0; tag < 4; ++tag) {
        Operation& own =
            operations.emplace_back(other, TaggedMessages::Key{tag, number}, tag < 2 ? 1 : 100'000);
        const bool sends = (tag % 2 == 0) == (port.rank() == 0);
        sends ? group.messages.send(own) : group.messages.receive(own);
      }
    };
    if (port.rank() == 0) {
      begin(0);
      group.messages.fail_all({WEIR_STATUS_NETWORK_ERROR, "revoked"});
      begin(1);
    }
    ASSERT_TRUE(port.barrier(kAMinute).ok());
    if (port.rank() == 1) {
      begin(0);
      begin(1);
    }
    int failed = 0;
    for (Operation& own : operations) {
      own.await(port);
      failed += own.outcome.ok() ? 0 : 1;
    }
    // The first short message was sent before, and short ones are sent without an answer.
    EXPECT_EQ(failed, port.rank() == 0 ? 7 : 5);
    ASSERT_TRUE(port.barrier(kAMinute).ok());
  });
}

TEST(TaggedMessages, AllFail_OperationsInProgressAndLaterOnes) {
  InprocHub hub(1, 0);
  on_ranks(hub, 1, ProgressBy::caller, [&](Port& port) {
    Group group(port);
    Operation expected(0, {0, 0}, 1), late(0, {0, 1}, 1);
    group.messages.receive(expected);
    EXPECT_FALSE(expected.is_done.load());
    group.messages.fail_all({WEIR_STATUS_NETWORK_ERROR, "revoked"});
    EXPECT_EQ(expected.outcome.message, "revoked");
    group.messages.send(late);
    EXPECT_EQ(late.outcome.message, "revoked");
  });
}

}  // namespace
}  // namespace weir::rt
