#include "fabric/group_hub.hpp"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace weir::rt {
namespace {

using test::on_ranks;

constexpr std::int64_t kHubPatience = 100'000'000'000;

/// Counts what it hears.
class HubCounter final : public GroupHub::Member {
 public:
  void received(Rank, GroupHub::Kind, std::uint64_t step,
                std::span<const std::byte>) noexcept override {
    in_order = in_order && step == static_cast<std::uint64_t>(count.load());
    ++count;
  }
  void lost(Rank, const std::string&) noexcept override { ++losses; }

  std::atomic<int> count{0}, losses{0};
  std::atomic<bool> in_order{true};
};

TEST(GroupHubs, MessagesBeforeTheMemberEnters_AreDeliveredInOrder) {
  constexpr int kMessages = 20;
  InprocHub network(2, 0);
  on_ranks(network, 2, ProgressBy::hybrid, [&](Port& port) {
    GroupHub hub(port, Channel::grid);
    HubCounter counter;
    std::uint32_t number = 0;
    const std::vector<std::byte> body(1000);
    for (std::uint64_t step = 0; step < kMessages && port.rank() == 0; ++step) {
      hub.send(1, 1, 7, step, body);
    }
    EXPECT_TRUE(port.barrier(kHubPatience).ok());
    EXPECT_EQ(hub.skip(), 0u);  // no member is number 0
    hub.enter(counter, number);
    EXPECT_EQ(number, 1u);
    if (port.rank() == 1) {
      EXPECT_TRUE(
          port.wait_until([&] { return counter.count == kMessages; }, kHubPatience, "messages"));
      EXPECT_TRUE(counter.in_order);
    }
    EXPECT_TRUE(port.barrier(kHubPatience).ok());
    hub.leave(number);
  });
}

/// Keeps the body that it hears.
class HubBody final : public GroupHub::Member {
 public:
  void received(Rank, GroupHub::Kind, std::uint64_t,
                std::span<const std::byte> body) noexcept override {
    bytes.assign(body.begin(), body.end());
    complete = true;
  }
  void lost(Rank, const std::string&) noexcept override {}

  std::vector<std::byte> bytes;
  std::atomic<bool> complete{false};
};

TEST(GroupHubs, BodySentInTwoParts_ArrivesAsOne) {
  const std::vector<std::byte> first(100, std::byte{1}), rest(3 * Port::kFrameBytes, std::byte{2});
  InprocHub network(2, 0);
  on_ranks(network, 2, ProgressBy::hybrid, [&](Port& port) {
    GroupHub hub(port, Channel::grid);
    HubBody member;
    std::uint32_t number = 0;
    hub.enter(member, number);
    if (port.rank() == 0) {
      hub.send(1, number, 7, 0, first, rest);
    } else {
      EXPECT_TRUE(port.wait_until([&] { return member.complete.load(); }, kHubPatience, "a body"));
      std::vector<std::byte> both = first;
      both.insert(both.end(), rest.begin(), rest.end());
      EXPECT_EQ(member.bytes, both);
    }
    EXPECT_TRUE(port.barrier(kHubPatience).ok());
    hub.leave(number);
  });
}

TEST(GroupHubs, MessageThatIsNotAGroupMessage_SenderIsDropped) {
  InprocHub network(2, 0);
  on_ranks(network, 2, ProgressBy::hybrid, [&](Port& port) {
    GroupHub hub(port, Channel::grid);
    const Rank other = 1 - port.rank();
    const std::vector<std::byte> nonsense(100);
    if (port.rank() == 0) port.send(1, Channel::grid, nonsense);
    EXPECT_TRUE(port.wait_until([&] { return !port.alive(other); }, kHubPatience, "an end"));
    if (port.rank() == 0) return;  // rank 1 has left
    const std::string why = port.why_lost(0);
    EXPECT_NE(why.find("not one of a grid"), std::string::npos) << why;
  });
}

TEST(GroupHubs, EarlyMessagesBeyondTheLimit_SenderIsDropped) {
  constexpr std::size_t kPiece = 4u << 20;
  InprocHub network(2, 0);
  on_ranks(network, 2, ProgressBy::hybrid, [&](Port& port) {
    GroupHub hub(port, Channel::grid);
    ASSERT_TRUE(port.barrier(kHubPatience).ok());  // both listen
    if (port.rank() == 0) {
      const std::vector<std::byte> body(kPiece);
      std::size_t sent = 0;
      try {
        for (; sent < 100 * kPiece; sent += kPiece) hub.send(1, 0, 7, 0, body);
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), WEIR_STATUS_NETWORK_ERROR) << error.what();
      }
      EXPECT_GE(sent, GroupHub::kMostEarly - kPiece);
      return;
    }
    EXPECT_TRUE(port.wait_until([&] { return !port.alive(0); }, kHubPatience, "the end of rank 0"));
    const std::string why = port.why_lost(0);
    EXPECT_NE(why.find("more for grids and shares"), std::string::npos) << why;
  });
}

TEST(GroupHubs, MessagesForARefusedNumber_AreNotKept) {
  constexpr std::size_t kPiece = 4u << 20;
  InprocHub network(2, 0);
  on_ranks(network, 2, ProgressBy::hybrid, [&](Port& port) {
    GroupHub hub(port, Channel::message, GroupHub::Numbering::given);
    if (port.rank() == 1) hub.refuse(5);
    ASSERT_TRUE(port.barrier(kHubPatience).ok());
    const std::vector<std::byte> body(kPiece);
    for (std::size_t sent = 0; port.rank() == 0 && sent <= GroupHub::kMostEarly; sent += kPiece) {
      hub.send(1, 5, 7, 0, body);
    }
    EXPECT_TRUE(port.barrier(kHubPatience).ok());
    EXPECT_TRUE(port.alive(1 - port.rank())) << port.why_lost(1 - port.rank());
    EXPECT_TRUE(port.barrier(kHubPatience).ok());
  });
}

}  // namespace
}  // namespace weir::rt
