// Ranks of one process over UCX. They exchange addresses over the link within a process.
#include "fabric/ucx/ucx_library.hpp"

#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/shm/node_link.hpp"
#include "ranks.hpp"

namespace weir::rt {
namespace {

/// Returns the processor time of the process in nanoseconds.
std::int64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

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
        std::unique_ptr<Link> link = hub.link(rank);
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
  std::atomic<int> refused_{0};
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

/// Rank 2 is alone, so a message of it must wake the others, which sleep in shared memory.
TEST_F(Ucx, WakesThreadsThatSleepInANode) {
  const auto program = [](Port& port) {
    EXPECT_TRUE(port.info().can_sleep);
    test::OrderCheck check(port.ranks());
    port.listen(Channel::user, &check);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    if (port.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const unsigned number = 0;
      for (Rank to = 0; to < 2; ++to) {
        port.send(to, Channel::user, std::as_bytes(std::span(&number, 1)));
      }
    } else {
      EXPECT_TRUE(port.wait_until([&] { return check.count == 1; }, test::kAMinute, "a message"));
    }
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    port.listen(Channel::user, nullptr);
  };
  auto made = links(3, 2);
  const std::int64_t before = processor_ns();
  test::on_links(std::move(made), ProgressBy::caller, program, test::membership());
  EXPECT_LT(processor_ns() - before, 250'000'000) << "a thread polls for 0.3 s";
}

TEST_F(Ucx, NoRankUsesItUnlessAllCan) {
  setenv("WEIR_UCX", "0", 1);
  EXPECT_EQ(links(3)[0], nullptr);
  EXPECT_EQ(refused_, 3);
  required_ = false;
  const auto made = links(3);
  unsetenv("WEIR_UCX");
  for (const auto& link : made) {
    ASSERT_NE(link, nullptr);
    EXPECT_EQ(link->info().name, "inproc");
  }
}

TEST_F(Ucx, SendsNothingToARankThatWasCut) {
  auto made = links(2);
  struct Nothing final : PacketSink {
    void packet(Rank, std::span<const std::byte>) noexcept override { ++count; }
    int count = 0;
  } sink;
  const std::byte byte{1};
  const std::span<const std::byte> packet(&byte, 1);
  ASSERT_TRUE(made[1]->send(0, {&packet, 1}));
  for (int i = 0; i < 10'000 && sink.count == 0; ++i) {
    made[0]->receive(sink);
    made[1]->receive(sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sink.count, 1);
  made[0]->cut(1, true);
  EXPECT_TRUE(made[0]->send(1, {&packet, 1}));
  EXPECT_TRUE(made[0]->drained());
}

}  // namespace
}  // namespace weir::rt
