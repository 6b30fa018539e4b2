// Ranks of one process over UCX. They exchange addresses over the link within a process.
#include "fabric/ucx/ucx_library.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/shm/node_link.hpp"
#include "forwarding_link.hpp"
#include "ranks.hpp"
#include "surroundings.hpp"

namespace weir::rt {
namespace {

/// Counts packets.
class CountingSink final : public PacketSink {
 public:
  void packet(Rank, std::span<const std::byte>) noexcept override { ++count; }
  int count = 0;
};

class Ucx : public testing::Test {
 protected:
  void SetUp() override {
    if (ucx_library_path().empty()) GTEST_SKIP() << "weir was built without UCX";
  }

  /// Links of ranks in nodes of at most `node` of them; null for a rank that has refused.
  std::vector<std::unique_ptr<Link>> links(Rank ranks, Rank node = 1) {
    InprocHub hub(ranks, 0);
    std::vector<std::unique_ptr<Link>> made(ranks);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::unique_ptr<Link> link = std::make_unique<test::PolledLink>(hub.link(rank), receives_);
        Node found = find_node(*link, node, test::kAMinute);
        try {
          link = ucx_link(std::move(link), found.early, test::kAMinute, required_);
        } catch (const Error& error) {
          ++refused_;
          EXPECT_STREQ(error.what(), "not all ranks can use UCX: rank 0: WEIR_UCX is 0");
          return;
        }
        made[rank] = std::make_unique<NodeLink>(std::move(link), std::move(found));
      });
    }
    for (std::thread& thread : threads) thread.join();
    return made;
  }

  bool required_ = true;
  std::atomic<int> refused_{0}, receives_{0};
};

TEST_F(Ucx, KeepsMessagesOfAllSizesInOrder) {
  constexpr int kMessages = 300;
  const auto program = [](Port& port) {
    EXPECT_TRUE(port.info().can_sleep);
    const Rank next = (port.rank() + 1) % port.ranks();
    EXPECT_EQ(std::string(port.peer_info(next).name).substr(0, 3), "ucx");
    test::OrderCheck check(port.ranks());
    port.listen(Channel::user, &check);
    std::vector<std::byte> message(600'000);
    for (int i = 0; i < kMessages; ++i) {
      std::memcpy(message.data(), &i, sizeof i);
      const std::size_t bytes = i % 50 == 7 ? message.size() : 8u + static_cast<unsigned>(i) * 17;
      for (Rank to = 0; to < port.ranks(); ++to) {
        port.send(to, Channel::user, std::span(message).first(bytes));
      }
    }
    const int all = kMessages * static_cast<int>(port.ranks());
    EXPECT_TRUE(port.wait_until([&] { return check.count == all; }, test::kAMinute, "messages"));
    EXPECT_EQ(check.wrong, 0);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    port.listen(Channel::user, nullptr);
  };
  for (const ProgressBy by : {ProgressBy::thread, ProgressBy::caller, ProgressBy::hybrid}) {
    test::on_links(links(3), by, program, test::membership());
  }
}

/// Ranks 0 and 1 are a node: each has joined when a packet has come, in the node or over UCX.
TEST_F(Ucx, AllRanksHaveJoined_BootstrapLinkIsNoLongerPolled) {
  std::atomic<int> joined{-1};
  const auto program = [&](Port& port) {
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    if (port.rank() == 0) joined = receives_.load();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    EXPECT_EQ(receives_, joined);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
  };
  test::on_links(links(3, 2), ProgressBy::caller, program, test::membership());
  EXPECT_GT(joined, 0);
}

/// A wait that nothing ends would hang.
TEST_F(Ucx, ArrivingPacketOrWake_EndsWaits) {
  const auto made = links(2);
  CountingSink sink;
  std::thread receiver([&] {
    while (sink.count == 0) {
      const std::uint32_t bell = made[0]->bell();
      if (!made[0]->receive(sink)) made[0]->wait(bell, sys::kNever);
    }
  });
  const std::byte byte{1};
  const std::span<const std::byte> packet(&byte, 1);
  EXPECT_TRUE(made[1]->send(0, {&packet, 1}));
  CountingSink none;
  while (!made[1]->drained()) made[1]->receive(none);
  receiver.join();

  std::vector<std::thread> sleepers;
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back([&, bell = made[0]->bell()] {
      while (made[0]->bell() == bell) made[0]->wait(bell, sys::kNever);
    });
  }
  made[0]->wake();
  for (std::thread& sleeper : sleepers) sleeper.join();
}

TEST_F(Ucx, UcxIsDisabled_RequiredFailsAndOptionalFallsBack) {
  const EnvironmentVariable variable("WEIR_UCX", "0");
  EXPECT_EQ(links(3)[0], nullptr);
  EXPECT_EQ(refused_, 3);
  required_ = false;
  const auto made = links(3);
  for (const auto& link : made) {
    ASSERT_NE(link, nullptr);
    EXPECT_EQ(link->info().name, "inproc");
  }
}

TEST_F(Ucx, SendToACutRank_DiscardsThePacket) {
  auto made = links(2);
  made[0]->cut(1, true);
  const std::byte byte{1};
  const std::span<const std::byte> packet(&byte, 1);
  EXPECT_TRUE(made[0]->send(1, {&packet, 1}));
  EXPECT_TRUE(made[0]->drained());
}

}  // namespace
}  // namespace weir::rt
