#include "fabric/port.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "committing_link.hpp"
#include "forwarding_link.hpp"
#include "no_memory.hpp"
#include "ranks.hpp"
#include "reserving_link.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

using test::on_ranks;

constexpr std::int64_t kLong = 100'000'000'000;

/// What one rank received on a channel.
class RecordingListener final : public Listener {
 public:
  void on_message(Rank from, std::span<const std::byte> message) noexcept override {
    messages_[from].emplace_back(message.begin(), message.end());
    ++count_;
  }
  void on_rank_lost(Rank rank, const std::string& why) noexcept override {
    losses_.emplace_back(rank, why);
    ++lost_;
  }

  int count() const { return count_.load(); }
  int losses() const { return lost_.load(); }
  const std::string& loss(std::size_t index) const { return losses_[index].second; }
  const std::vector<std::vector<std::byte>>& of(Rank rank) { return messages_[rank]; }

 private:
  std::map<Rank, std::vector<std::vector<std::byte>>> messages_;
  std::vector<std::pair<Rank, std::string>> losses_;
  std::atomic<int> count_{0}, lost_{0};
};

std::vector<std::byte> message_of(unsigned seed, std::size_t bytes) {
  std::mt19937 random(seed);
  std::vector<std::byte> message(bytes);
  for (std::byte& each : message) each = static_cast<std::byte>(random());
  return message;
}

class Ports : public testing::TestWithParam<ProgressBy> {};

TEST_P(Ports, MessagesOfAnySizeArriveInOrderOnTheirChannel) {
  constexpr Rank kRanks = 3;
  constexpr unsigned kMessages = 60;
  const auto size_of = [](unsigned i) { return i % 20 == 19 ? 900'000u : i * 37u % 5000u; };
  InprocHub hub(kRanks, 0);
  on_ranks(hub, kRanks, GetParam(), [&](Port& port) {
    RecordingListener user, grid;
    port.listen(Channel::user, &user);
    port.listen(Channel::grid, &grid);
    for (unsigned i = 0; i < kMessages; ++i) {
      for (Rank to = 0; to < kRanks; ++to) {
        const auto message = message_of(i * 100 + port.rank() * 10 + to, size_of(i));
        const std::span<const std::byte> whole = message;
        const std::size_t cut = whole.size() / 3;
        port.send(to, i % 2 == 0 ? Channel::user : Channel::grid, whole.first(cut),
                  whole.subspan(cut));
      }
    }
    const auto all = [&] { return user.count() + grid.count() == int(kRanks * kMessages); };
    EXPECT_TRUE(port.wait_until(all, kLong, "messages"));
    EXPECT_TRUE(port.barrier(kLong).ok());
    for (Rank from = 0; from < kRanks; ++from) {
      ASSERT_EQ(user.of(from).size(), kMessages / 2);
      for (unsigned i = 0; i < kMessages; ++i) {
        const auto& received = (i % 2 == 0 ? user : grid).of(from)[i / 2];
        EXPECT_EQ(received, message_of(i * 100 + from * 10 + port.rank(), size_of(i)));
      }
    }
    port.listen(Channel::user, nullptr);
    port.listen(Channel::grid, nullptr);
  });
}

TEST_P(Ports, PutAndGet_ReachTheWindowsOfAllRanks) {
  constexpr Rank kRanks = 3;
  constexpr std::size_t kBytes = 400'000;
  InprocHub hub(kRanks, 0);
  on_ranks(hub, kRanks, GetParam(), [&](Port& port) {
    std::vector<std::byte> memory(kRanks * kBytes);
    const WindowId window = port.expose(memory.data(), memory.size());
    EXPECT_EQ(window, 0u);
    EXPECT_TRUE(port.barrier(kLong).ok());
    const auto mine = message_of(port.rank(), kBytes);
    for (Rank to = 0; to < kRanks; ++to) {
      port.put(to, window, port.rank() * kBytes, mine, nullptr);
    }
    for (Rank to = 0; to < kRanks; ++to) EXPECT_TRUE(port.flush(to, kLong).ok());
    EXPECT_TRUE(port.barrier(kLong).ok());
    for (Rank from = 0; from < kRanks; ++from) {
      const auto wanted = message_of(from, kBytes);
      EXPECT_EQ(std::memcmp(&memory[from * kBytes], wanted.data(), kBytes), 0);
      std::vector<std::byte> fetched(kBytes);
      port.get(from, window, (kRanks - 1) * kBytes, fetched, nullptr);
      EXPECT_TRUE(port.flush(from, kLong).ok());
      EXPECT_EQ(fetched, message_of(kRanks - 1, kBytes));
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.withdraw(window);
  });
}

class Old final : public Completion {
 public:
  void completed(std::int64_t old, const Outcome& outcome) noexcept override {
    old_ = old;
    status_ = outcome.status;
    done_ = true;
  }
  std::int64_t wait(Port& port) {
    EXPECT_TRUE(port.wait_until([this] { return done_.load(); }, kLong, "an old value"));
    EXPECT_EQ(status_, WEIR_STATUS_OK);
    done_ = false;
    return old_;
  }

 private:
  std::int64_t old_ = 0;
  weir_status status_ = WEIR_STATUS_OK;
  std::atomic<bool> done_{false};
};

TEST_P(Ports, ConcurrentFetchAddAndCompareSwap_LoseNoUpdate) {
  constexpr Rank kRanks = 4;
  constexpr int kTickets = 100;
  std::mutex mutex;
  std::vector<std::int64_t> tickets;
  InprocHub hub(kRanks, 0);
  on_ranks(hub, kRanks, GetParam(), [&](Port& port) {
    std::int64_t words[2] = {};
    const WindowId window = port.expose(words, sizeof words);
    EXPECT_TRUE(port.barrier(kLong).ok());
    Old old;
    std::vector<std::int64_t> mine;
    for (int i = 0; i < kTickets; ++i) {
      if (i % 2 == 0) {
        port.fetch_add(1, window, 0, 1, &old);
        mine.push_back(old.wait(port));
        continue;
      }
      // The same by compare and swap.
      for (std::int64_t expected = 0;;) {
        port.compare_swap(1, window, 0, expected, expected + 1, &old);
        const std::int64_t found = old.wait(port);
        if (found == expected) break;
        expected = found;
      }
      mine.push_back(-1);
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 1) {
      EXPECT_EQ(words[0], kTickets * std::int64_t{kRanks});
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.withdraw(window);
    const std::lock_guard lock(mutex);
    tickets.insert(tickets.end(), mine.begin(), mine.end());
  });
  std::erase(tickets, -1);
  std::sort(tickets.begin(), tickets.end());
  EXPECT_EQ(tickets.size(), kTickets * std::size_t{kRanks} / 2);
  EXPECT_EQ(std::adjacent_find(tickets.begin(), tickets.end()), tickets.end());
}

TEST_P(Ports, ThreadsThatShareAPort_KeepTheirMessagesInOrder) {
  constexpr Rank kRanks = 2;
  constexpr unsigned kThreads = 3, kMessages = 300;
  InprocHub hub(kRanks, 0);
  on_ranks(hub, kRanks, GetParam(), [&](Port& port) {
    RecordingListener received;
    port.listen(Channel::user, &received);
    std::vector<std::int64_t> sums(kThreads);
    const WindowId window = port.expose(sums.data(), kThreads * sizeof(std::int64_t));
    EXPECT_TRUE(port.barrier(kLong).ok());
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < kMessages; ++i) {
          const unsigned text[2] = {t, i};
          port.send(1 - port.rank(), Channel::user, std::as_bytes(std::span(text)));
          port.fetch_add(1 - port.rank(), window, t * sizeof(std::int64_t), i, nullptr);
        }
        EXPECT_TRUE(port.flush(1 - port.rank(), kLong).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto all = [&] { return received.count() == int(kThreads * kMessages); };
    EXPECT_TRUE(port.wait_until(all, kLong, "messages"));
    EXPECT_TRUE(port.barrier(kLong).ok());
    std::vector<unsigned> next(kThreads);
    for (const auto& message : received.of(1 - port.rank())) {
      unsigned text[2];
      std::memcpy(text, message.data(), sizeof text);
      EXPECT_EQ(text[1], next[text[0]]++);
    }
    for (const std::int64_t sum : sums) EXPECT_EQ(sum, kMessages * (kMessages - 1) / 2);
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.withdraw(window);
    port.listen(Channel::user, nullptr);
  });
}

TEST_P(Ports, InsideAHandler_SendSucceedsAndBarrierFailsWithBusy) {
  struct Echo final : Listener {
    explicit Echo(Port& port) : port(port) {}
    void on_message(Rank from, std::span<const std::byte> message) noexcept override {
      if (port.rank() == 1) port.send(from, Channel::user, message);
      try {
        port.barrier(0);
      } catch (const Error& error) {
        busy += error.status() == WEIR_STATUS_BUSY;
      }
      ++count;
    }
    void on_rank_lost(Rank, const std::string&) noexcept override {}
    Port& port;
    std::atomic<int> count{0}, busy{0};
  };
  constexpr int kMessages = 200;
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    Echo echo(port);
    port.listen(Channel::user, &echo);
    const auto message = message_of(1, 20'000);  // more than the way takes
    for (int i = 0; i < kMessages && port.rank() == 0; ++i) port.send(1, Channel::user, message);
    EXPECT_TRUE(port.wait_until([&] { return echo.count == kMessages; }, kLong, "echoes"));
    EXPECT_EQ(echo.busy, kMessages);
    port.listen(Channel::user, nullptr);
  });
}

/// Answers messages, and keeps the message of the error if there is one: WEIR_STATUS_BUSY.
class Answering final : public Listener {
 public:
  explicit Answering(std::function<void(Rank)> answer) : answer_(std::move(answer)) {}

  void on_message(Rank from, std::span<const std::byte>) noexcept override {
    told = thrown_by<Error>([&] { answer_(from); }, WEIR_STATUS_BUSY);
    over = true;
  }
  void on_rank_lost(Rank, const std::string&) noexcept override {}

  std::string told;
  std::atomic<bool> over{false};

 private:
  const std::function<void(Rank)> answer_;
};

TEST_P(Ports, HandlerThatSendsWithoutEnd_GetsBusyAtTheLimit) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    Answering flood([&](Rank from) {
      const std::vector<std::byte> much(4 << 20);
      for (int i = 0; i < 100; ++i) port.send(from, Channel::collective, much);
    });
    RecordingListener received;
    port.listen(Channel::user, &flood);
    port.listen(Channel::collective, &received);
    if (port.rank() == 0) port.send(1, Channel::user, {});
    EXPECT_TRUE(port.barrier(kLong).ok());  // and what was kept arrives
    if (port.rank() == 1) {
      EXPECT_TRUE(port.wait_until([&] { return flood.over.load(); }, kLong, "the flood"));
      EXPECT_NE(flood.told.find("of 64 MiB are full"), std::string::npos) << flood.told;
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 0) {
      EXPECT_GE(received.count(), 16);
      EXPECT_LT(received.count(), 100);
    }
    port.listen(Channel::user, nullptr);
    port.listen(Channel::collective, nullptr);
  });
}

constexpr std::int64_t kPutWord = 7;  // outlives the puts

TEST_P(Ports, HandlerThatPutsWithoutEnd_GetsBusyAtTheLimit) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    int started = 0;
    Answering flood([&](Rank from) {
      for (; started < 1'000'000; ++started) {
        port.put(from, 0, 0, std::as_bytes(std::span(&kPutWord, 1)), nullptr);
      }
    });
    std::int64_t word = 0;
    const WindowId window = port.expose(&word, sizeof word);
    port.listen(Channel::user, &flood);
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 0) port.send(1, Channel::user, {});
    if (port.rank() == 1) {
      EXPECT_TRUE(port.wait_until([&] { return flood.over.load(); }, kLong, "the flood"));
      EXPECT_EQ(started, 65'536);
      EXPECT_NE(flood.told.find("start fewer in handlers"), std::string::npos) << flood.told;
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(Channel::user, nullptr);
    port.withdraw(window);
  });
}

TEST(Port, LargeMessageIsQueued_SendInsideAHandlerSucceeds) {
  constexpr std::size_t kLarge = 80u << 20;  // more than handlers may leave behind
  std::atomic<bool> answered{false};
  InprocHub hub(2, 0);
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    Answering answer(
        [&](Rank from) { port.send(from, Channel::collective, std::vector<std::byte>(1)); });
    RecordingListener received;
    port.listen(Channel::user, &answer);
    port.listen(Channel::collective, &received);
    if (port.rank() == 0) {
      port.send(1, Channel::collective, std::vector<std::byte>(kLarge));
      EXPECT_TRUE(port.wait_until([&] { return answer.over.load(); }, kLong, "the question"));
      EXPECT_EQ(answer.told, "");
      answered = true;
      answered.notify_all();
    } else {
      port.send(0, Channel::user, {});
      answered.wait(false);  // takes nothing of the large message before
      EXPECT_TRUE(port.wait_until([&] { return received.count() == 2; }, kLong, "both messages"));
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(Channel::user, nullptr);
    port.listen(Channel::collective, nullptr);
  });
}

TEST(Port, FullLink_BarrierTimesOut) {
  InprocHub hub(2, 0);
  std::atomic<bool> over{false};
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    if (port.rank() == 0) {
      port.send(1, Channel::user, std::vector<std::byte>(4u << 20));
      EXPECT_EQ(port.barrier(1'000'000).status, WEIR_STATUS_TIMEOUT);
      over = true;
    }
    const std::int64_t deadline = sys::deadline_after(kLong / 10);
    while (!over && sys::now_ns() < deadline) std::this_thread::yield();
    EXPECT_TRUE(over) << "rank 0 waits for rank 1";
    EXPECT_TRUE(port.barrier(kLong).ok());
  });
}

/// What waits while the way is full is not copied.
TEST(Port, FullLink_ReservedMessageWaitsWithoutACopy) {
  InprocHub hub(2, 0);
  std::atomic<int> out{0};
  std::atomic<bool> posted{false};
  const auto body = message_of(7, test::ReservingLink::kReservedBytes);
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < 2; ++rank) {
    links.push_back(std::make_unique<test::ReservingLink>(hub.link(rank), out));
  }
  const auto program = [&](Port& port) {
    RecordingListener received;
    port.listen(Channel::user, &received);
    if (port.rank() == 0) {
      port.post(1, Channel::user, std::vector<std::byte>(4u << 20));  // more than the way takes
      std::byte* const memory = port.reserve(1, body.size());
      std::copy(body.begin(), body.end(), memory);
      port.post_reserved(1, Channel::user, {}, {memory, body.size()});
      EXPECT_EQ(out.load(), 1);
      posted = true;
    } else {
      while (!posted) sys::yield();
      EXPECT_TRUE(port.wait_until([&] { return received.count() == 2; }, kLong, "messages"));
      EXPECT_EQ(received.of(0).back(), body);
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(Channel::user, nullptr);
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
  EXPECT_EQ(out.load(), 0);
}

TEST_P(Ports, WaitConditionThrows_PortIsNoLongerInAListener) {
  InprocHub hub(1, 0);
  on_ranks(hub, 1, GetParam(), [](Port& port) {
    const auto done = [&] {  // the deadlock check calls it, too
      if (port.inside_listener()) fail(WEIR_STATUS_NETWORK_ERROR, "asked inside");
      return false;
    };
    EXPECT_THROW(port.wait_until(done, -1, "what does not come"), Error);
    EXPECT_FALSE(port.inside_listener());
  });
}

TEST_P(Ports, MessageBeforeItsListener_IsDeliveredOnListen) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    const auto message = message_of(port.rank(), 100);
    port.send(1 - port.rank(), Channel::user, message);
    EXPECT_TRUE(port.barrier(kLong).ok());
    RecordingListener received;
    port.listen(Channel::user, &received);
    EXPECT_EQ(received.count(), 1);
    port.listen(Channel::user, nullptr);
  });
}

TEST_P(Ports, MessagesToOwnRankWithoutListener_SendGetsBusyAtTheLimit) {
  InprocHub hub(1, 0);
  on_ranks(hub, 1, GetParam(), [&](Port& port) {
    constexpr int kMost = 100;
    const std::vector<std::byte> message(1 << 20);
    int sent = 0;
    const auto send = [&] {
      for (; sent < kMost; ++sent) {
        port.send(0, Channel::user, message);
        while (port.progress()) {
        }
      }
    };
    const std::string refusal = thrown_by<Error>(send, WEIR_STATUS_BUSY);
    EXPECT_NE(refusal.find("of 64 MiB are full; set a handler first"), std::string::npos);
    EXPECT_GE(sent, 64);
    RecordingListener received;
    port.listen(Channel::user, &received);
    port.send(0, Channel::user, message);
    EXPECT_TRUE(port.wait_until([&] { return received.count() == sent + 1; }, kLong, "messages"));
    port.listen(Channel::user, nullptr);
  });
}

/// Counts the large packets it takes; one of them it refuses at first.
class CountingLink final : public test::ForwardingLink {
 public:
  CountingLink(std::unique_ptr<Link> link, std::atomic<int>& taken, std::atomic<int>& refuse)
      : ForwardingLink(std::move(link)), taken_(taken), refuse_(refuse) {}

  bool send(Rank to, Parts parts) noexcept override {
    std::size_t bytes = 0;
    for (const auto& part : parts) bytes += part.size();
    const bool large = bytes > 1000;
    if (large && refuse_ > 0 && --refuse_ == 0) return false;
    if (!link_->send(to, parts)) return false;
    if (large) ++taken_;
    return true;
  }
  /// As a link that could have, but not this.
  std::optional<Outcome> direct(const OneSided&, std::uint64_t& cursor,
                                std::int64_t&) noexcept override {
    cursor = 0;
    return std::nullopt;
  }

 private:
  std::atomic<int>&taken_, &refuse_;
};

TEST(Port, FullLinkDuringAPut_ResumesWithoutSendingPacketsTwice) {
  constexpr std::size_t kBytes = 400'000;
  InprocHub hub(2, 0);
  std::atomic<int> taken{0}, refuse{0};
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < 2; ++rank) {
    links.push_back(std::make_unique<CountingLink>(hub.link(rank), taken, refuse));
  }
  const auto program = [&](Port& port) {
    std::vector<std::byte> memory(kBytes);
    const WindowId window = port.expose(memory.data(), memory.size());
    EXPECT_TRUE(port.barrier(kLong).ok());
    int wanted = 0;
    for (const unsigned seed : {1u, 2u}) {
      if (port.rank() == 1) break;
      const auto mine = message_of(seed, kBytes);
      refuse = seed == 1 ? 0 : 4;
      taken = 0;
      port.put(1, window, 0, mine, nullptr);
      EXPECT_TRUE(port.flush(1, kLong).ok());
      if (seed == 1) wanted = taken;
      EXPECT_EQ(taken.load(), wanted);
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 1) {
      EXPECT_EQ(memory, message_of(2, kBytes));
    }
    port.withdraw(window);
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
  EXPECT_EQ(refuse.load(), 0);
}

TEST_P(Ports, AccessOutsideAWindowIsRefused) {
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    std::int64_t words[2] = {};
    const WindowId window = port.expose(words, sizeof words);
    EXPECT_TRUE(port.barrier(kLong).ok());
    const auto data = message_of(0, 16);
    const Rank other = 1 - port.rank();
    const auto refused = [&](const char* words_of_message) {
      const Outcome outcome = port.flush(other, kLong);
      EXPECT_EQ(outcome.status, WEIR_STATUS_INVALID_ARGUMENT);
      EXPECT_NE(outcome.message.find(words_of_message), std::string::npos) << outcome.message;
    };
    port.put(other, window, 8, data, nullptr);
    refused("it has no window 0 with the bytes 8 to 24");
    port.put(other, window, UINT64_MAX, data, nullptr);
    refused("refuses access");
    port.put(other, window + 1, 0, data, nullptr);
    refused("it has no window 1");
    port.fetch_add(other, window, 4, 1, nullptr);
    refused("an aligned word at 4");
    EXPECT_TRUE(port.flush(other, kLong).ok());
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.withdraw(window);
    EXPECT_TRUE(port.barrier(kLong).ok());
    std::vector<std::byte> fetched(16);
    port.get(other, window, 0, fetched, nullptr);
    refused("it has no window 0");
    EXPECT_EQ(words[0], 0);
    EXPECT_EQ(words[1], 0);
    EXPECT_TRUE(port.barrier(kLong).ok());
  });
}

/// As when a process is stopped in the midst of an operation.
TEST(Port, WithdrawOfAWindowInUse_WaitsWithoutBlockingThePort) {
  const Segment segment(2);
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < 2; ++rank) {
    links.push_back(
        std::make_unique<ShmLink>(Segment::attach(dup(segment.descriptor()), 2), rank, kLong));
  }
  const auto program = [&](Port& port) {
    char memory = 'a';
    const WindowId window = port.expose(&memory, 1);
    ShmWindow& slot = segment.rank(port.rank()).windows[window];
    slot.users.fetch_add(1);
    std::atomic<bool> over{false};
    std::thread withdrawing([&] {
      port.withdraw(window);
      over = true;
    });
    while (slot.id.load() != 0) std::this_thread::yield();
    EXPECT_TRUE(port.barrier(kLong / 2).ok());
    EXPECT_FALSE(over) << "it has not waited for the user inside";
    slot.users.fetch_sub(1);
    withdrawing.join();
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
}

/// As when the system takes seconds to find many pages.
TEST(Port, SlowMemoryCommit_DoesNotBlockOtherThreadsOfThePort) {
  InprocHub hub(2, 0);
  std::atomic<bool> begun{false}, there{false};
  const auto commit = [&] {
    begun = true;
    while (!there) std::this_thread::yield();
    return WEIR_STATUS_OK;
  };
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < 2; ++rank) {
    links.push_back(std::make_unique<test::CommittingLink>(hub.link(rank), commit));
  }
  const auto program = [&](Port& port) {
    std::thread allocating;
    if (port.rank() == 0) {
      allocating = std::thread([&] { port.release(port.allocate(64)); });
      while (!begun) std::this_thread::yield();
    }
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 1) return;
    EXPECT_FALSE(there.exchange(true));
    allocating.join();
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
}

/// Has no memory for the first wait that is reported to it.
class ForgetfulLink final : public test::ForwardingLink {
 public:
  ForgetfulLink(std::unique_ptr<Link> link, std::atomic<int>& reports)
      : ForwardingLink(std::move(link)), reports_(reports) {}
  std::optional<std::string> idle(IdleWait&, std::uint64_t) override {
    if (reports_++ == 0) throw std::bad_alloc();
    return std::nullopt;
  }

 private:
  std::atomic<int>& reports_;
};

/// The caller may have an operation in flight, whose result goes to its stack.
TEST(Port, NoMemoryToReportAWait_TheWaitGoesOn) {
  InprocHub hub(1, 0);
  std::atomic<int> reports{0};
  std::vector<std::unique_ptr<Link>> links;
  links.push_back(std::make_unique<ForgetfulLink>(hub.link(0), reports));
  const auto program = [&](Port& port) {
    EXPECT_NO_THROW(port.wait_until([&] { return reports > 0; }, -1, "a report"));
  };
  test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
}

/// Notes whether the lock was free, and adds `more` from inside a listener.
struct NotedWork final : UnlockedWork {
  NotedWork(Port& owner, std::string letter, std::string& order, NotedWork* more = nullptr)
      : port(owner), name(std::move(letter)), text(order), next(more) {}
  void run() noexcept override {
    EXPECT_FALSE(port.inside_listener());
    if (next != nullptr) {
      const Port::ListenerScope scope(port);
      port.run_without_lock(*next);
    }
    text += name;
  }

  Port& port;
  const std::string name;
  std::string& text;
  NotedWork* const next;
};

TEST(Port, WorkWithoutLock_RunsInOrderAfterTheListenerAndNeverInsideOtherWork) {
  InprocHub hub(1, 0);
  on_ranks(hub, 1, ProgressBy::caller, [](Port& port) {
    std::string order;
    NotedWork last(port, "d", order), first(port, "a", order, &last), second(port, "b", order);
    {
      const Port::ListenerScope scope(port);
      port.run_without_lock(first);
      port.run_without_lock(second);
      order += "listener ";
    }
    EXPECT_EQ(order, "listener abd");
    NotedWork alone(port, "e", order);
    port.run_without_lock(alone);
    EXPECT_EQ(order, "listener abde");
  });
}

TEST(Port, FailedPutOfAnEndedThread_DoesNotFailAnotherThreadsFlush) {
  InprocHub hub(1, 0);
  on_ranks(hub, 1, ProgressBy::caller, [&](Port& port) {
    const auto data = message_of(0, 16);
    for (int i = 0; i < 10; ++i) {  // the second may be where the first was
      std::thread([&] { port.put(0, 7, 0, data, nullptr); }).join();
      std::thread([&] { EXPECT_TRUE(port.flush(0, kLong).ok()); }).join();
    }
    port.put(0, 7, 0, data, nullptr);
    EXPECT_EQ(port.flush(0, kLong).status, WEIR_STATUS_INVALID_ARGUMENT);
  });
}

TEST_P(Ports, RankHasLeft_ListenersAndSendsNameIt) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, GetParam(), [&](Port& port) {
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 1) return;
    RecordingListener received;
    port.listen(Channel::user, &received);
    EXPECT_TRUE(port.wait_until([&] { return received.losses() > 0; }, kLong, "a rank to leave"));
    EXPECT_EQ(received.loss(0), "rank 1 has left the fabric");
    EXPECT_FALSE(port.alive(1));
    EXPECT_EQ(thrown_by<Error>([&] { port.send(1, Channel::user, {}); }, WEIR_STATUS_NETWORK_ERROR),
              "cannot send to: rank 1 has left the fabric");
    port.drop(1, "is not needed");
    EXPECT_EQ(port.why_lost(1), "rank 1 has left the fabric");
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(Channel::user, nullptr);
  });
}

TEST_P(Ports, LeaveAtExit_PeersReportThatTheFabricWasNotClosed) {
  InprocHub hub(3, 0);
  on_ranks(hub, 3, GetParam(), [&](Port& port) {
    RecordingListener received;
    port.listen(Channel::user, &received);
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 1) {
      port.send(2, Channel::user, std::vector<std::byte>(1u << 20));
      port.leave_at_exit();
      port.leave_at_exit();
      EXPECT_FALSE(port.alive(0) || port.alive(2));
      EXPECT_EQ(port.flush(0, kLong).status, WEIR_STATUS_OK);
      EXPECT_EQ(thrown_by<Error>([&] { port.send(0, Channel::user, {}); }),
                "cannot send to: rank 0 is out of reach: this rank has left the fabric");
      EXPECT_TRUE(port.barrier(kLong).ok());
      EXPECT_EQ(received.losses(), 0);
      return;
    }
    EXPECT_TRUE(port.wait_until([&] { return received.losses() > 0; }, kLong, "a rank to leave"));
    EXPECT_EQ(received.loss(0), "rank 1 has ended without closing the fabric");
    EXPECT_EQ(received.count(), port.rank() == 2 ? 1 : 0);
    EXPECT_TRUE(port.barrier(kLong).ok());
    port.listen(Channel::user, nullptr);
  });
}

TEST_P(Ports, LeaveAtExitInsideAListener_PeersReportTheLoss) {
  struct Leaving final : Listener {
    explicit Leaving(Port& port) : port_(port) {}
    void on_message(Rank, std::span<const std::byte>) noexcept override {
      port_.leave_at_exit();
      left = true;
    }
    void on_rank_lost(Rank, const std::string&) noexcept override {}
    std::atomic<bool> left{false};

   private:
    Port& port_;
  };
  test::on_sharing_ranks(3, GetParam(), [&](Port& port) {
    Leaving leaving(port);
    RecordingListener received;
    port.listen(Channel::user, &received);
    port.listen(Channel::grid, &leaving);
    EXPECT_TRUE(port.barrier(kLong).ok());
    if (port.rank() == 0) port.send(1, Channel::grid, {});
    if (port.rank() == 1) {
      EXPECT_TRUE(port.wait_until([&] { return leaving.left.load(); }, kLong, "the message"));
    } else {
      EXPECT_TRUE(port.wait_until([&] { return received.losses() > 0; }, kLong, "a rank to leave"));
      EXPECT_EQ(received.loss(0), "rank 1 has ended without closing the fabric");
      EXPECT_TRUE(port.barrier(kLong).ok());
    }
    port.listen(Channel::grid, nullptr);
    port.listen(Channel::user, nullptr);
  });
}

/// Starts an operation on rank 1 once more when it has ended.
class Again final : public Completion {
 public:
  explicit Again(Port& port) : port_(port) {}
  void start() { port_.fetch_add(1, 0, 0, 1, this); }
  void completed(std::int64_t, const Outcome& outcome) noexcept override {
    EXPECT_EQ(outcome.status, WEIR_STATUS_NETWORK_ERROR);
    if (++ends_ > 1) return;
    try {
      start();
    } catch (const Error&) {  // it is known to be gone already
      ++ends_;
    }
  }
  int ends() const { return ends_.load(); }

 private:
  Port& port_;
  std::atomic<int> ends_{0};
};

TEST(PortFaults, OperationStartedInAFailedCompletion_FailsToo) {
  InprocHub hub(2, 0);
  std::atomic<bool> over{false};
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    if (port.rank() == 1) return over.wait(false);  // and answers nothing
    Again again(port);
    again.start();
    port.drop(1, "is not wanted any more");
    EXPECT_TRUE(port.wait_until([&] { return again.ends() == 2; }, kLong, "both ends"));
    over = true;
    over.notify_all();
  });
}

TEST_P(Ports, OutOfMemoryInSendAndPut_ThrowsAndLaterCallsSucceed) {
  if (!test::NoMemory::kWorks) GTEST_SKIP() << "the sanitizer has operator new to itself";
  InprocHub hub(2, 0);
  on_ranks(hub, 2, GetParam(), [&](Port& port) {
    RecordingListener received;
    port.listen(Channel::user, &received);
    const auto message = message_of(5, 1000), long_message = message_of(6, 1'000'000);
    std::vector<std::byte> memory(1000);
    const WindowId window = port.expose(memory.data(), memory.size());
    EXPECT_TRUE(port.barrier(kLong).ok());
    const Rank other = 1 - port.rank();
    EXPECT_TRUE(port.flush(other, kLong).ok());  // this thread has its account
    int failed = 0;
    {
      const test::NoMemory none;
      for (const auto* each : {&message, &long_message}) {
        try {
          port.send(other, Channel::user, *each);
        } catch (const std::bad_alloc&) {
          ++failed;
        }
      }
      try {
        port.put(other, window, 0, message, nullptr);
      } catch (const std::bad_alloc&) {
        ++failed;
      }
    }
    EXPECT_EQ(failed, 3);
    port.send(other, Channel::user, long_message);
    port.put(other, window, 0, message, nullptr);
    EXPECT_TRUE(port.flush(other, kLong).ok());
    EXPECT_TRUE(port.wait_until([&] { return received.count() == 1; }, kLong, "a message"));
    EXPECT_TRUE(port.barrier(kLong).ok());
    EXPECT_EQ(memory, message);
    port.listen(Channel::user, nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Progress, Ports,
                         testing::Values(ProgressBy::thread, ProgressBy::caller,
                                         ProgressBy::hybrid),
                         [](const auto& info) {
                           return info.param == ProgressBy::thread   ? "thread"
                                  : info.param == ProgressBy::caller ? "caller"
                                                                     : "hybrid";
                         });

/// What goes wrong on the links of all ranks.
struct LinkFaults {
  std::atomic<Rank> silent{UINT32_MAX};        ///< all packets from and to this rank are dropped
  std::atomic<std::size_t> corrupt{SIZE_MAX};  ///< the next packet of rank 0 differs in this byte
};

class FaultyLink final : public test::ForwardingLink {
 public:
  FaultyLink(std::unique_ptr<Link> link, LinkFaults& faults)
      : ForwardingLink(std::move(link)), faults_(faults) {}
  bool send(Rank to, Parts parts) noexcept override {
    const Rank own = info().rank, silent = faults_.silent;
    if (own == silent || to == silent) return true;
    if (own != 0 || faults_.corrupt == SIZE_MAX) return link_->send(to, parts);
    std::vector<std::byte> packet;
    for (const auto& part : parts) packet.insert(packet.end(), part.begin(), part.end());
    const std::size_t byte = faults_.corrupt.exchange(SIZE_MAX);
    if (byte < packet.size()) packet[byte] ^= std::byte{0x40};
    const std::span<const std::byte> whole(packet);
    return link_->send(to, {&whole, 1});
  }

 private:
  LinkFaults& faults_;
};

std::vector<std::unique_ptr<Link>> faulty_links(InprocHub& hub, Rank ranks, LinkFaults& faults) {
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < ranks; ++rank) {
    links.push_back(std::make_unique<FaultyLink>(hub.link(rank), faults));
  }
  return links;
}

TEST(PortFaults, SilentRank_IsLostAndTheOthersContinue) {
  constexpr std::int64_t kLostAfter = 300'000'000;
  InprocHub hub(3, 0);
  std::atomic<int> over{0};
  std::atomic<bool> silent{false};
  LinkFaults faults;
  test::on_links(
      faulty_links(hub, 3, faults), ProgressBy::thread,
      [&](Port& port) {
        std::int64_t word = 0;
        const WindowId window = port.expose(&word, sizeof word);
        EXPECT_TRUE(port.barrier(kLong).ok());
        if (port.rank() == 2) {
          faults.silent = 2;
          silent = true;
          while (over < 2) std::this_thread::yield();
          return;
        }
        while (!silent) std::this_thread::yield();
        Outcome outcome;
        try {
          port.fetch_add(2, window, 0, 1, nullptr);
          outcome = port.flush(2, kLong);
        } catch (const Error& error) {
          outcome = {error.status(), error.what()};
        }
        EXPECT_EQ(outcome.status, WEIR_STATUS_NETWORK_ERROR);
        EXPECT_NE(outcome.message.find("rank 2 has not answered for"), std::string::npos)
            << outcome.message;
        EXPECT_TRUE(port.barrier(kLong).ok());
        port.fetch_add(1 - port.rank(), window, 0, 1, nullptr);
        EXPECT_TRUE(port.flush(1 - port.rank(), kLong).ok());
        EXPECT_TRUE(port.barrier(kLong).ok());
        ++over;
      },
      test::membership(kLostAfter));
}

TEST(PortFaults, CorruptPacketHeader_ItsSenderIsLost) {
  for (const std::size_t byte : {0u, 4u, 5u, 7u, 8u, 12u}) {
    InprocHub hub(2, 0);
    LinkFaults faults;
    const auto program = [&](Port& port) {
      EXPECT_TRUE(port.barrier(kLong).ok());
      if (port.rank() == 0) {
        faults.corrupt = byte;
        port.send(1, Channel::user, {});
        return;
      }
      EXPECT_TRUE(port.wait_until([&] { return !port.alive(0); }, kLong, "the refusal"));
      EXPECT_NE(port.why_lost(0).find("rank 0 sent a packet that is refused"), std::string::npos)
          << port.why_lost(0);
    };
    test::on_links(faulty_links(hub, 2, faults), ProgressBy::thread, program, test::membership());
  }
}

/// Says of each answer of a kind that it is one of another kind.
class WrongAnswers final : public test::ForwardingLink {
 public:
  WrongAnswers(std::unique_ptr<Link> link, std::byte kind, std::byte other)
      : ForwardingLink(std::move(link)), kind_(kind), other_(other) {}
  bool send(Rank to, Parts parts) noexcept override {
    std::vector<std::byte> packet;
    for (const auto& part : parts) packet.insert(packet.end(), part.begin(), part.end());
    if (packet[kKindAt] == kind_) {
      packet[kKindAt] = other_;
      seal(packet);
    }
    const std::span<const std::byte> whole(packet);
    return link_->send(to, {&whole, 1});
  }

 private:
  static constexpr std::size_t kKindAt = 5, kCheckAt = 6;

  /// As PacketHeader does.
  static void seal(std::vector<std::byte>& packet) {
    std::uint32_t magic = 0, bytes = 0, sequence = 0;
    std::memcpy(&magic, &packet[0], sizeof magic);
    std::memcpy(&bytes, &packet[8], sizeof bytes);
    std::memcpy(&sequence, &packet[12], sizeof sequence);
    const auto format = static_cast<std::uint64_t>(packet[4]);
    const auto kind = static_cast<std::uint64_t>(packet[kKindAt]);
    std::uint64_t mix = bytes * 0x9E3779B97F4A7C15u ^ sequence * 0xC2B2AE3D27D4EB4Fu;
    mix = (mix ^ magic ^ format << 40 ^ kind << 32) * 0x165667B19E3779F9u;
    const auto check = static_cast<std::uint16_t>(mix >> 48);
    std::memcpy(&packet[kCheckAt], &check, sizeof check);
  }

  const std::byte kind_, other_;
};

TEST(PortFaults, ReplyOfTheWrongKind_FailsTheOperation) {
  constexpr std::byte kPutDone{7}, kGetPart{8}, kChangeDone{9};
  const std::pair<std::byte, std::byte> wrong[] = {
      {kPutDone, kChangeDone}, {kGetPart, kPutDone}, {kChangeDone, kGetPart}};
  for (const auto& [kind, other] : wrong) {
    InprocHub hub(2, 0);
    std::vector<std::unique_ptr<Link>> links;
    links.push_back(hub.link(0));
    links.push_back(std::make_unique<WrongAnswers>(hub.link(1), kind, other));
    const auto program = [&](Port& port) {
      std::int64_t word = 0;
      const WindowId window = port.expose(&word, sizeof word);
      EXPECT_TRUE(port.barrier(kLong).ok());
      if (port.rank() == 1) {
        EXPECT_TRUE(port.wait_until([&] { return !port.alive(0); }, kLong, "rank 0 to leave"));
        return;
      }
      std::vector<std::byte> bytes(sizeof word);
      if (kind == kPutDone) port.put(1, window, 0, bytes, nullptr);
      if (kind == kGetPart) port.get(1, window, 0, bytes, nullptr);
      if (kind == kChangeDone) port.fetch_add(1, window, 0, 1, nullptr);
      const Outcome outcome = port.flush(1, kLong);
      EXPECT_EQ(outcome.status, WEIR_STATUS_NETWORK_ERROR);
      EXPECT_NE(outcome.message.find("another question"), std::string::npos) << outcome.message;
    };
    test::on_links(std::move(links), ProgressBy::thread, program, test::membership());
  }
}

TEST(PortFaults, CorruptPayload_IsDetectedOnlyWithChecksums) {
  constexpr std::size_t kBehindHeader = 16, kBytes = 1000;
  for (const bool sums : {false, true}) {
    for (const std::size_t byte : {kBehindHeader + 20, kBehindHeader + kBytes}) {
      Membership members = test::membership();
      members.sends_checksums = sums;
      InprocHub hub(2, 0);
      LinkFaults faults;
      test::on_links(
          faulty_links(hub, 2, faults), ProgressBy::caller,
          [&](Port& port) {
            RecordingListener received;
            port.listen(Channel::user, &received);
            EXPECT_TRUE(port.barrier(kLong).ok());
            if (port.rank() == 0) {
              faults.corrupt = byte;
              port.send(1, Channel::user, message_of(0, kBytes));
            } else {
              const auto over = [&] { return !port.alive(0); };
              EXPECT_TRUE(port.wait_until(over, kLong, "the refusal or the end"));
              EXPECT_EQ(received.count(), sums ? 0 : 1);
              EXPECT_EQ(port.why_lost(0).find("another checksum") != std::string::npos, sums)
                  << port.why_lost(0);
            }
            port.listen(Channel::user, nullptr);
          },
          members);
    }
  }
}

TEST(PortFaults, NoMemoryForAReceivedMessage_ItsSenderIsLost) {
  if (!test::NoMemory::kWorks) GTEST_SKIP() << "the sanitizer has operator new to itself";
  InprocHub hub(2, 0);
  std::atomic<bool> over{false};
  on_ranks(hub, 2, ProgressBy::caller, [&](Port& port) {
    if (port.rank() == 1) {
      port.send(0, Channel::user, message_of(1, 20'000));
      while (!over) port.progress();
      return;
    }
    RecordingListener received;
    port.listen(Channel::user, &received);
    port.listen(Channel::user, nullptr);
    {
      const test::NoMemory none;
      while (port.alive(1)) port.progress();
    }
    EXPECT_NE(port.why_lost(1), "");
    EXPECT_THROW(port.send(1, Channel::user, {}), Error);
    over = true;
  });
}

TEST(PortFaults, RanksOfDifferentBuilds_CannotJoin) {
  InprocHub hub(2, 0);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, link = hub.link(rank), rank]() mutable {
      Membership own = test::membership();
      own.build = rank == 0 ? "1.0 (a)" : "1.0 (b)";
      EXPECT_EQ(thrown_by<Error>([&] { const Transport transport(std::move(link), own); },
                                 WEIR_STATUS_UNSUPPORTED),
                "rank 1 runs weir 1.0 (b), rank 0 runs weir 1.0 (a): start the same program on all "
                "ranks");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PortFaults, RankThatNeverJoins_IsNamedInTheError) {
  InprocHub hub(2, 0);
  Membership own = test::membership();
  own.join_within_ns = 20'000'000;
  EXPECT_EQ(thrown_by<Error>([&] { const Transport transport(hub.link(0), own); },
                             WEIR_STATUS_NETWORK_ERROR),
            "rank 1 has not joined the fabric within 0 s");
}

/// Takes nothing before another rank has come and gone.
class LateLink final : public test::ForwardingLink {
 public:
  LateLink(std::unique_ptr<Link> link, const std::atomic<bool>& ready)
      : ForwardingLink(std::move(link)), ready_(ready) {}
  bool receive(PacketSink& sink) noexcept override {
    if (ready_) return link_->receive(sink);
    while (!ready_) std::this_thread::yield();
    return false;
  }

 private:
  const std::atomic<bool>& ready_;
};

/// Notes until when it was to sleep.
class NotingLink final : public test::ForwardingLink {
 public:
  NotingLink(std::unique_ptr<Link> link, std::int64_t& until)
      : ForwardingLink(std::move(link)), until_(until) {}
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    until_ = deadline_ns;
    link_->wait(bell, std::min(deadline_ns, sys::now_ns() + 1'000'000));
  }

 private:
  std::int64_t& until_;
};

class NoSink final : public TransportSink {
  void arrived(Rank, std::span<const std::byte>) noexcept override {}
  void completed(void*, std::int64_t, Outcome) noexcept override {}
  void lost(Rank, const std::string&) noexcept override {}
};

TEST(PortFaults, PeerWithAShortLossTimeout_SleepEndsInTimeForAHeartbeat) {
  constexpr std::int64_t kImpatient = 800'000'000;
  InprocHub hub(2, 0);
  std::unique_ptr<Transport> impatient;
  std::thread other(
      [&] { impatient = std::make_unique<Transport>(hub.link(1), test::membership(kImpatient)); });
  std::int64_t until = 0;
  Transport patient(std::make_unique<NotingLink>(hub.link(0), until), test::membership(0));
  other.join();
  NoSink sink;
  for (int pass = 0; pass < 1000; ++pass) patient.progress(sink);  // not all look at the time
  const std::int64_t after = sys::now_ns();
  patient.wait(patient.link().bell(), sys::kNever);
  EXPECT_LE(until, std::max(after + kImpatient / 16, sys::now_ns() + 100'000));
  impatient.reset();
}

TEST(PortFaults, RankLeavesBeforeItsJoinIsSeen_MessageAndLossArrive) {
  InprocHub hub(2, 0);
  std::atomic<bool> left{false};
  std::thread first([&, link = hub.link(0)]() mutable {
    {
      Port port(std::make_unique<Transport>(std::move(link), test::membership()),
                ProgressBy::caller);
      port.send(1, Channel::user, {});
    }
    left = true;
  });
  std::unique_ptr<Port> port;
  EXPECT_NO_THROW(port = std::make_unique<Port>(
                      std::make_unique<Transport>(std::make_unique<LateLink>(hub.link(1), left),
                                                  test::membership()),
                      ProgressBy::caller));
  first.join();
  if (port == nullptr) return;
  RecordingListener received;
  port->listen(Channel::user, &received);
  EXPECT_TRUE(port->wait_until([&] { return received.losses() == 1; }, kLong, "the loss"));
  EXPECT_EQ(received.count(), 1);
  EXPECT_EQ(received.loss(0), "rank 0 has left the fabric");
  port->listen(Channel::user, nullptr);
}

TEST(PortFaults, RanksThatWaitForEachOther_GetADeadlockError) {
  for (const ProgressBy progress : {ProgressBy::caller, ProgressBy::hybrid, ProgressBy::thread}) {
    InprocHub hub(3, 0);
    hub.report_stalls();
    std::atomic<int> over{0};
    on_ranks(hub, 3, progress, [&](Port& port) {
      RecordingListener received;
      port.listen(Channel::user, &received);
      port.send((port.rank() + 1) % 3, Channel::user, {});
      EXPECT_TRUE(port.wait_until([&] { return received.count() == 1; }, -1, "a message"));
      EXPECT_TRUE(port.barrier(-1).ok());
      const std::string told = thrown_by<Error>([&] {
        if (port.rank() == 0) {
          port.barrier(-1);
        } else {
          port.wait_until([&] { return received.count() == 2; }, -1, "a second message");
        }
      });
      ++over;
      while (over < 3) std::this_thread::yield();
      EXPECT_EQ(told,
                "all ranks wait for each other: rank 0 waits for a barrier, rank 1 waits for a "
                "second message, rank 2 waits for a second message");
      if (port.rank() == 0) {
        const auto second = [&] {  // the deadlock check calls it inside
          if (port.inside_listener()) ++over;
          return received.count() == 2;
        };
        EXPECT_NO_THROW(port.wait_until(second, -1, "a second message"));
      } else if (port.rank() == 1) {
        while (over < 4) std::this_thread::yield();
        EXPECT_NO_THROW(port.send(0, Channel::user, {}));
      }
      port.listen(Channel::user, nullptr);
    });
  }
}

/// The thread that had the progress lock may have polled just before the packet came.
TEST(Inproc, UnreceivedPacket_WaitReturnsBeforeItsDeadline) {
  InprocHub hub(2, 0);
  const auto link = hub.link(0);
  EXPECT_TRUE(hub.link(1)->send(0, {}));
  const std::int64_t deadline = sys::deadline_after(kLong);
  link->wait(link->bell(), deadline);
  EXPECT_LT(sys::now_ns(), deadline);
}

TEST(Inproc, SeedDeterminesThePacketOrder) {
  // Alone in its thread: everything is there before anything is taken.
  const auto order = [](std::uint64_t seed) {
    struct Order final : PacketSink {
      void packet(Rank from, std::span<const std::byte>) noexcept override {
        text += char('a' + from);
      }
      std::string text;
    } order;
    InprocHub hub(4, seed);
    const auto link = hub.link(0);
    for (int i = 0; i < 8; ++i) {
      for (Rank rank = 1; rank < 4; ++rank) EXPECT_TRUE(hub.link(rank)->send(0, {}));
    }
    while (link->receive(order)) {
    }
    EXPECT_EQ(order.text.size(), 24u);
    return order.text;
  };
  EXPECT_EQ(order(0), "bcdbcdbcdbcdbcdbcdbcdbcd");
  EXPECT_NE(order(1), order(0));
  EXPECT_NE(order(1), order(2));
  EXPECT_EQ(order(1), order(1));
}

}  // namespace
}  // namespace weir::rt
