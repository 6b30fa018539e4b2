#include "fabric/fabric_watchdog.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "ranks.hpp"
#include "standard_error.hpp"

namespace weir::rt {
namespace {

constexpr std::int64_t kPatience = 100'000'000'000, kLimit = 20'000'000;

class FabricWatchdogs : public testing::TestWithParam<ProgressBy> {};

/// Whether a rank has said these words, after whatever time.
bool said_by(const std::string& text, Rank rank, const std::string& words) {
  const std::string begin = "weir: rank " + std::to_string(rank) + ": nothing has come for ";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::size_t colon = text.find(" s: ", at);
    if (colon != std::string::npos && text.compare(colon + 4, words.size(), words) == 0)
      return true;
  }
  return false;
}

TEST_P(FabricWatchdogs, RanksThatWaitForEachOther_EachReportsAllWaits) {
  constexpr const char* kWords =
      "all ranks wait for each other: ranks 0, 2 wait for a barrier, rank 1 waits for a message\n";
  StandardError said;
  std::atomic<bool> message{false};
  InprocHub hub(3, 0);
  std::thread ranks([&] {
    test::on_ranks(hub, 3, GetParam(), [&](Port& port) {
      FabricWatchdog watchdog(port, kLimit);
      if (port.rank() == 1) {
        EXPECT_TRUE(port.wait_until([&] { return message.load(); }, kPatience, "a message"));
      }
      EXPECT_TRUE(port.barrier(kPatience).ok());
      EXPECT_TRUE(port.barrier(kPatience).ok());  // no rank goes before
    });
  });
  const std::string& text = said.wait_for(kWords, 3);
  for (const Rank rank : {0u, 1u, 2u}) EXPECT_TRUE(said_by(text, rank, kWords)) << rank << text;
  message = true;
  ranks.join();
}

TEST_P(FabricWatchdogs, PeerInNoCallOrLeft_ReportNamesItsState) {
  const bool answers = GetParam() != ProgressBy::caller;
  const std::string words = std::string("rank 0 waits for a barrier, rank 1 ") +
                            (answers ? "is in no call of the fabric" : "does not answer") +
                            ", rank 2 has left the fabric\n";
  StandardError said;
  std::atomic<bool> go_on{false};
  InprocHub hub(3, 0);
  std::thread ranks([&] {
    test::on_ranks(hub, 3, GetParam(), [&](Port& port) {
      if (port.rank() == 2) return;
      FabricWatchdog watchdog(port, port.rank() == 0 ? kLimit : 0);
      if (port.rank() == 1) go_on.wait(false);
      EXPECT_TRUE(port.barrier(kPatience).ok());
    });
  });
  const std::string& text = said.wait_for(words, 1);
  EXPECT_TRUE(said_by(text, 0, words)) << text;
  go_on = true;
  go_on.notify_all();
  ranks.join();
}

TEST(FabricWatchdog, NewStallAfterProgress_IsReportedAgain) {
  constexpr const char* kWords = "all ranks wait for each other: ranks 0, 1 wait for ";
  StandardError said;
  std::atomic<int> round{0};
  InprocHub hub(2, 0);
  std::thread ranks([&] {
    test::on_ranks(hub, 2, ProgressBy::hybrid, [&](Port& port) {
      FabricWatchdog watchdog(port, port.rank() == 0 ? kLimit : 0);
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(port.wait_until([&] { return round.load() > i; }, kPatience, "a message"));
        EXPECT_TRUE(port.barrier(kPatience).ok());
      }
    });
  });
  for (std::size_t told = 1; told <= 2; ++told) {
    const std::string& text = said.wait_for(kWords, told);
    EXPECT_GE(said.count(kWords), told) << text;
    ++round;
  }
  ranks.join();
}

INSTANTIATE_TEST_SUITE_P(Progress, FabricWatchdogs,
                         testing::Values(ProgressBy::thread, ProgressBy::caller,
                                         ProgressBy::hybrid),
                         [](const auto& each) {
                           return each.param == ProgressBy::thread   ? "thread"
                                  : each.param == ProgressBy::caller ? "caller"
                                                                     : "hybrid";
                         });

}  // namespace
}  // namespace weir::rt
