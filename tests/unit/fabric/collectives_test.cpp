#include "fabric/collectives.hpp"

#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "base/threads.hpp"
#include "ranks.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

using test::on_ranks;

constexpr std::int64_t kCollectivePatience = 100'000'000'000, kSoon = 10'000'000;

/// What an exchange says that is to fail.
std::string exchange_failure(Collectives& collectives, std::size_t bytes, std::int64_t timeout_ns,
                             weir_status status) {
  const Collectives::Bytes contribution(bytes);
  return thrown_by<Error>([&] { collectives.exchange("sum", contribution, timeout_ns); }, status);
}

TEST(Collectives, RankZeroReceivesNothing_ExchangeTimesOut) {
  constexpr std::size_t kMuch = 4u << 20;  // more than is on the way to a rank
  InprocHub hub(2, 0);
  std::atomic<bool> over{false};
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    Collectives collectives(port);
    if (port.rank() == 1) {
      EXPECT_EQ(exchange_failure(collectives, kMuch, kSoon, WEIR_STATUS_TIMEOUT),
                "not all ranks have called the sum in time");
      over = true;
      return;
    }
    const std::int64_t deadline = sys::deadline_after(kCollectivePatience / 10);
    while (!over && sys::now_ns() < deadline) sys::yield();
    EXPECT_TRUE(over) << "rank 1 waits for rank 0";
    // What rank 1 has contributed still comes; nothing more does.
    EXPECT_EQ(collectives.exchange("sum", {}, kCollectivePatience)[1].size(), kMuch);
    const std::string why =
        exchange_failure(collectives, 0, kCollectivePatience, WEIR_STATUS_NETWORK_ERROR);
    EXPECT_NE(why.find("rank 1 has given up: not all"), std::string::npos) << why;
  });
}

TEST(Collectives, CallAfterRankZeroFailedAndLeft_NamesTheRankThatWasLostFirst) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, ProgressBy::hybrid, [&](Port& port) {
    Collectives collectives(port);
    if (port.rank() == 2) return;
    if (port.rank() == 1) {
      const auto alone = [&] { return !port.alive(0) && !port.alive(2); };
      EXPECT_TRUE(port.wait_until(alone, kCollectivePatience, "the others to leave"));
    }
    EXPECT_EQ(exchange_failure(collectives, 8, kCollectivePatience, WEIR_STATUS_NETWORK_ERROR),
              "sum failed: rank 2 has left the fabric");
  });
}

TEST(Collectives, ExchangeInsideAHandler_IsRefusedAndLaterOnesSucceed) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    Collectives collectives(port);
    {
      const Port::ListenerScope scope(port);
      EXPECT_EQ(exchange_failure(collectives, 0, kCollectivePatience, WEIR_STATUS_BUSY),
                "a handler of messages must not wait for a sum");
    }
    EXPECT_EQ(collectives.exchange("sum", {}, kCollectivePatience).size(), 2u);
    EXPECT_TRUE(port.barrier(kCollectivePatience).ok());
  });
}

}  // namespace
}  // namespace weir::rt
