#include "fabric/shm/node_link.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "forwarding_link.hpp"
#include "ranks.hpp"
#include "standard_error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

/// Links of ranks of one process, in nodes of at most `most` of them.
std::vector<std::unique_ptr<Link>> in_nodes(std::vector<std::unique_ptr<Link>> outer, Rank most) {
  std::vector<std::unique_ptr<Link>> links(outer.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < outer.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Node node = find_node(*outer[rank], most, test::kAMinute);
      links[rank] = std::make_unique<NodeLink>(std::move(outer[rank]), std::move(node));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return links;
}

std::vector<std::unique_ptr<Link>> in_nodes(InprocHub& hub, Rank ranks, Rank most) {
  std::vector<std::unique_ptr<Link>> outer;
  for (Rank rank = 0; rank < ranks; ++rank) outer.push_back(hub.link(rank));
  return in_nodes(std::move(outer), most);
}

/// Does not end a wait when a packet arrives.
class PollingLink final : public test::ForwardingLink {
 public:
  explicit PollingLink(std::unique_ptr<Link> link)
      : ForwardingLink(std::move(link)), info_(link_->info()) {
    info_.can_sleep = false;
  }
  const LinkInfo& info() const noexcept override { return info_; }

 private:
  LinkInfo info_;
};

/// Sleeps until ring(), if without a deadline, and says when a thread does.
class AlarmLink final : public test::ForwardingLink {
 public:
  using ForwardingLink::ForwardingLink;

  std::uint32_t bell() const noexcept override { return bell_.load(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    if (deadline_ns != sys::kNever) return;
    sleeps_.release();
    bell_.wait(bell);
  }
  void wake() noexcept override { ring(); }

  void ring() noexcept {
    ++bell_;
    bell_.notify_all();
  }
  void await_sleeper() noexcept { sleeps_.acquire(); }

 private:
  std::atomic<std::uint32_t> bell_{0};
  std::counting_semaphore<> sleeps_{0};
};

/// How ranks make progress, and whether the outer link can sleep.
class Nodes : public testing::TestWithParam<std::tuple<ProgressBy, bool>> {};

TEST_P(Nodes, RanksInSeveralNodes_ExchangeMessagesAndAccessWindows) {
  constexpr Rank kRanks = 5;
  constexpr int kMessages = 200;
  const auto [progress, sleeps] = GetParam();
  InprocHub hub(kRanks, 0);
  const auto program = [&, sleeps = sleeps](Port& port) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const bool near = rank / 2 == port.rank() / 2 && port.rank() != 4;
      EXPECT_STREQ(port.peer_info(rank).name, near ? "shm" : "inproc")
          << port.rank() << ", " << rank;
      EXPECT_EQ(port.peer_info(rank).shares_memory, near);
    }
    EXPECT_EQ(port.info().can_sleep, sleeps);
    test::OrderCheck counter(kRanks);
    port.listen(Channel::user, &counter);
    std::vector<std::byte> message(3000);
    for (int i = 0; i < kMessages; ++i) {
      std::memcpy(message.data(), &i, sizeof i);
      for (Rank to = 0; to < kRanks; ++to) port.send(to, Channel::user, message);
    }
    const auto all = [&] { return counter.count == int(kRanks) * kMessages; };
    EXPECT_TRUE(port.wait_until(all, test::kAMinute, "messages"));
    EXPECT_EQ(counter.wrong, 0);

    auto* const words = static_cast<std::int64_t*>(port.allocate(8 * (kRanks + 1)));
    const WindowId window = port.expose(words, 8 * (kRanks + 1));
    EXPECT_EQ(window, 0u);
    EXPECT_EQ(port.offset_of(words).has_value(), port.rank() != 4);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    const std::int64_t mine = 10 + port.rank();
    const auto bytes = std::as_bytes(std::span(&mine, 1));
    for (Rank to = 0; to < kRanks; ++to) {
      port.put(to, window, 8 * port.rank(), bytes, nullptr);
      port.fetch_add(to, window, 8 * kRanks, 1, nullptr);
    }
    for (Rank to = 0; to < kRanks; ++to) EXPECT_TRUE(port.flush(to, test::kAMinute).ok());
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    for (Rank from = 0; from < kRanks; ++from) EXPECT_EQ(words[from], 10 + from);
    EXPECT_EQ(words[kRanks], kRanks);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    port.withdraw(window);
    port.release(words);
    port.listen(Channel::user, nullptr);
  };
  std::vector<std::unique_ptr<Link>> outer;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    outer.push_back(hub.link(rank));
    if (!sleeps) outer.back() = std::make_unique<PollingLink>(std::move(outer.back()));
  }
  test::on_links(in_nodes(std::move(outer), 2), progress, program, test::membership());
}

INSTANTIATE_TEST_SUITE_P(By, Nodes,
                         testing::Combine(testing::Values(ProgressBy::thread, ProgressBy::caller,
                                                          ProgressBy::hybrid),
                                          testing::Bool()));

/// Ranks 0 and 1 are a node, and rank 2 is reached by the outer link.
TEST(NodeLink, OuterLinkRings_ThreadsThatSleepInTheNodeWakeUp) {
  constexpr Rank kRanks = 3;
  InprocHub hub(kRanks, 0);
  std::vector<std::unique_ptr<Link>> outer;
  for (Rank rank = 0; rank < kRanks; ++rank) outer.push_back(hub.link(rank));
  auto alarm = std::make_unique<AlarmLink>(std::move(outer[0]));
  AlarmLink& first = *alarm;
  outer[0] = std::move(alarm);
  auto links = in_nodes(std::move(outer), 2);
  ASSERT_TRUE(links[0]->info().can_sleep);
  for (int i = 0; i < 3; ++i) {
    std::thread sleeper([&, bell = links[0]->bell()] {
      while (links[0]->bell() == bell) links[0]->wait(bell, sys::kNever);
    });
    first.await_sleeper();  // the watch sleeps on behalf of the thread
    first.ring();
    sleeper.join();
  }
}

TEST(NodeLink, NodeOfAllRanks_StopsPollingTheOuterLink) {
  constexpr Rank kRanks = 3;
  InprocHub hub(kRanks, 0);
  std::atomic<int> receives{0};
  std::vector<std::unique_ptr<Link>> outer;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    outer.push_back(std::make_unique<test::PolledLink>(hub.link(rank), receives));
  }
  auto links = in_nodes(std::move(outer), kRanks);
  EXPECT_GT(receives, 0);
  EXPECT_EQ(links[0]->info().name, "shm");
  EXPECT_TRUE(links[0]->info().can_sleep);
  std::atomic<int> before{0};
  const auto program = [&](Port& port) {
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());  // all have joined
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    before = receives.load();
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(port.barrier(test::kAMinute).ok());
    EXPECT_EQ(receives, before);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
}

TEST(NodeLink, SegmentCannotBeCreated_FallsBackToTheOuterLink) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = std::min<rlim_t>(before.rlim_max, 1u << 20);
  InprocHub hub(2, 0);
  StandardError said;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto links = in_nodes(hub, 2, 2);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string text = said.wait_for("rank 0 has created no segment", 1);
  EXPECT_NE(text.find("inproc connects the 2 ranks of this machine, without shared memory: no "
                      "shared memory for 2 ranks"),
            std::string::npos)
      << text;
  const auto program = [&](Port& port) {
    EXPECT_STREQ(port.peer_info(1 - port.rank()).name, "inproc");
    EXPECT_FALSE(port.info().shares_memory);
    EXPECT_TRUE(port.barrier(test::kAMinute).ok());
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
}

/// Takes packets as they arrive.
struct PacketSizes final : PacketSink {
  void packet(Rank, std::span<const std::byte> bytes) noexcept override {
    sizes.push_back(bytes.size());
  }
  std::vector<std::size_t> sizes;
};

TEST(NodeLink, PeerThatRunsAnotherVersion_ItsEarlyPacketsAreKept) {
  InprocHub hub(2, 0);
  const auto other = hub.link(1);
  const std::vector<std::byte> hello(77), frame(5);
  for (const std::span<const std::byte> part : {std::span(hello), std::span(frame)}) {
    ASSERT_TRUE(other->send(0, {&part, 1}));
  }
  auto outer = hub.link(0);
  Node node = find_node(*outer, 2, test::kAMinute);
  EXPECT_EQ(node.link, nullptr);
  NodeLink link(std::move(outer), std::move(node));
  PacketSizes packets;
  EXPECT_TRUE(link.receive(packets));
  EXPECT_EQ(packets.sizes, (std::vector<std::size_t>{77, 5}));
}

TEST(NodeLink, RankThatDoesNotJoin_IsNamedInTheError) {
  InprocHub hub(3, 0);
  const auto outer = hub.link(0);
  EXPECT_EQ(thrown_by<Error>([&] { find_node(*outer, 3, 1'000'000'000); }),
            "rank 1 has not joined the fabric within 1 s");
}

TEST(Segment, OpensOnlyTheFileThatWasCreated) {
  const Segment segment(2);
  const int descriptor = segment.descriptor();
  const auto again = Segment::open(getpid(), descriptor, segment.file(), 2);
  segment.rank(1).bell.store(7);
  EXPECT_EQ(again->rank(1).bell.load(), 7u);
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
  EXPECT_EQ(thrown_by<Error>([&] { Segment::open(getpid(), descriptor, segment.file() + 1, 2); }),
            path + " is another file: is /proc that of this container?");
  EXPECT_EQ(thrown_by<Error>([&] { Segment::open(getpid(), -1, segment.file(), 2); }),
            "cannot open /proc/" + std::to_string(getpid()) + "/fd/-1: No such file or directory");
}

}  // namespace
}  // namespace weir::rt
