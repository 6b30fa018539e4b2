// Tunnels of devices on threads of the host: the same text with groups that are made of threads.
#include <weir/device_tunnel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "team_threads.hpp"
#include "tunnel_tree.hpp"

namespace weir::device {
namespace {

/// Memory that delays some of its operations, by a seed: other orders of threads than usual.
struct ShakenMemory : HostMemory {
  static thread_local std::minstd_rand random;
  static void shake() {
    if (random() % 8 == 0) std::this_thread::yield();
  }
  static Count load(const Word& word) { return shake(), HostMemory::load(word); }
  static void store(Word& word, Count value) { shake(), HostMemory::store(word, value); }
  static bool exchange(Word& word, Count expected, Count desired) {
    return shake(), HostMemory::exchange(word, expected, desired);
  }
  static Count add(Word& word, Count value) { return shake(), HostMemory::add(word, value); }
};
thread_local std::minstd_rand ShakenMemory::random;

/// Memory that counts how often threads change words that all of them change.
struct CountingMemory : HostMemory {
  static inline std::atomic<Count> exchanges{0};
  static bool exchange(Word& word, Count expected, Count desired) {
    ++exchanges;
    return HostMemory::exchange(word, expected, desired);
  }
};

/// A tunnel with memory of its own.
template <class T, class Memory>
struct Owned {
  explicit Owned(Count capacity)
      : words(Tunnel<T, Memory>::words(capacity)),
        items(capacity),
        tunnel(words.data(), items.data(), capacity) {}
  std::vector<Count> words;
  std::vector<T> items;
  const Tunnel<T, Memory> tunnel;
};

/// Runs code(group, site) on teams of threads; of one thread each: without a team.
template <class Code>
void run_teams(unsigned teams, unsigned team_size, const Code& code) {
  run_team_threads(teams, team_size, [&](const auto& group, unsigned site) {
    ShakenMemory::random.seed(site + 1);
    code(group, site);
  });
}

template <class Memory>
void walk_tree(unsigned teams, unsigned team_size, Count capacity, unsigned depth) {
  Owned<tree::Node, Memory> nodes(capacity);
  std::vector<Tally<Memory>> tallies(teams * team_size);
  std::vector<Count> arrived(std::size_t{1} << depth);
  Count open = 1;
  const tree::Walk<Memory> walk{
      nodes.tunnel, {&open, tallies.data(), teams * team_size}, depth, arrived.data()};
  run_teams(teams, team_size, [&](const auto& group, unsigned site) {
    tree::plant(walk, group, site, site == 0);
    tree::climb(walk, group, site);
  });
  EXPECT_TRUE(std::all_of(arrived.begin(), arrived.end(), [](Count times) { return times == 1; }));
  Count created = 0, complete = 0;
  for (const Tally<Memory>& tally : tallies) {
    created += tally.created;
    complete += tally.complete;
  }
  EXPECT_EQ(created, (Count{2} << depth) - 1);
  EXPECT_EQ(complete, created);
}

TEST(DeviceTunnel, TreeOfItems_EachLeafArrivesOnceAtAnyCapacity) {
  for (const auto& [teams, team_size] :
       {std::pair{1U, 1U}, {4U, 1U}, {1U, 4U}, {2U, 2U}, {2U, 3U}}) {
    for (const Count capacity : {1u, 2u, 5u, 64u}) {
      SCOPED_TRACE(std::to_string(teams) + " x " + std::to_string(team_size) + ", " +
                   std::to_string(capacity));
      walk_tree<HostMemory>(teams, team_size, capacity, team_size == 1 ? 7 : 4);
      walk_tree<ShakenMemory>(teams, team_size, capacity, team_size == 1 ? 6 : 4);
    }
  }
}

/// Producers and consumers of random numbers of items at once: each item once, in order of each
/// producer.
TEST(DeviceTunnel, ConcurrentProducers_EachItemArrivesOnceInProducerOrder) {
  constexpr unsigned kProducers = 2, kConsumers = 2, kEach = 200;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Owned<Count, ShakenMemory> owned(1 + seed % 7);
    std::atomic<unsigned> taken{0};
    std::vector<std::vector<Count>> found(kConsumers);
    run_teams(kProducers + kConsumers, 1, [&](const auto& group, unsigned site) {
      ShakenMemory::random.seed(100 * seed + site);
      if (site < kProducers) {
        for (Count i = 0; i < kEach; ++i) {
          while (!owned.tunnel.put(group, site * kEach + i, true)) std::this_thread::yield();
        }
        return;
      }
      Count item = 0;
      while (taken < kProducers * kEach) {
        if (!owned.tunnel.get(group, item, true)) {
          std::this_thread::yield();
          continue;
        }
        found[site - kProducers].push_back(item);
        ++taken;
      }
    });
    std::vector<unsigned> times(kProducers * kEach);
    for (const auto& consumer : found) {
      std::vector<Count> next(kProducers);
      for (const Count item : consumer) {
        ++times[item];
        Count& least = next[item / kEach];
        EXPECT_GE(item % kEach, least);
        least = item % kEach + 1;
      }
    }
    ASSERT_EQ(std::count(times.begin(), times.end(), 1U), kProducers * kEach) << "seed " << seed;
  }
}

/// A group changes the words of all once, where threads by themselves do so each.
TEST(DeviceTunnel, GroupOperation_NeedsOneAtomicExchangeForAllThreads) {
  constexpr unsigned kTeamSize = 4, kRounds = 50;
  const auto exchanges = [](unsigned teams, unsigned team_size) {
    Owned<unsigned, CountingMemory> owned(kTeamSize);
    CountingMemory::exchanges = 0;
    std::atomic<unsigned> sum{0};
    std::barrier<> all(teams * team_size);
    run_teams(teams, team_size, [&](const auto& group, unsigned site) {
      for (unsigned round = 0; round < kRounds; ++round) {
        unsigned item = 0;
        EXPECT_TRUE(owned.tunnel.put(group, site, true));
        all.arrive_and_wait();
        EXPECT_TRUE(owned.tunnel.get(group, item, true));
        sum += item;
        all.arrive_and_wait();
      }
    });
    EXPECT_EQ(sum, kRounds * kTeamSize * (kTeamSize - 1) / 2);
    return CountingMemory::exchanges.load();
  };
  EXPECT_EQ(exchanges(1, kTeamSize), 2 * kRounds);
  EXPECT_GE(exchanges(kTeamSize, 1), 2 * kTeamSize * kRounds);
}

TEST(DeviceTunnel, GroupPutAboveCapacity_AcceptsTheFirstThatFit) {
  Owned<unsigned, HostMemory> owned(3);
  std::atomic<unsigned> put{0}, got{0};
  run_teams(1, 5, [&](const auto& group, unsigned site) {
    const bool has = site != 1;  // four of them
    if (owned.tunnel.put(group, site, has)) ++put;
    unsigned item = 9;
    if (owned.tunnel.get(group, item, true)) {
      EXPECT_NE(item, 1U);
      EXPECT_LT(item, 4U);  // the first three
      ++got;
    } else {
      EXPECT_EQ(item, 9U);
    }
  });
  EXPECT_EQ(put, 3U);
  EXPECT_EQ(got, 3U);
}

/// No end while a source is open, or an item that was created is not complete.
TEST(DeviceTunnel, Termination_RequiresClosedSourcesAndCompletedItems) {
  std::vector<Tally<HostMemory>> tallies(2);
  Count open = 2;
  const Ends<HostMemory> ends(&open, tallies.data(), 2);
  EXPECT_FALSE(ends.complete());
  ends.tally(0).create(3);
  ends.close();
  ends.tally(1).finish(3);
  EXPECT_FALSE(ends.complete());
  ends.close();
  EXPECT_TRUE(ends.complete());
  ends.tally(1).create(1);
  EXPECT_FALSE(ends.complete());
  ends.tally(0).finish(1);
  EXPECT_TRUE(ends.complete());
}

}  // namespace
}  // namespace weir::device
