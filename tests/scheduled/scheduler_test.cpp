// The scheduler itself: what it must find, and that a seed decides all.
#include "scheduler.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/parking.hpp"
#include "base/threads.hpp"

namespace weir::schedule {
namespace {

namespace sys = rt::sys;

Options with_seed(std::uint64_t seed, Strategy strategy = Strategy::random) {
  Options options;
  options.seed = seed;
  options.strategy = strategy;
  options.most_points = 1'000'000;
  return options;
}

/// Two threads add to a word, not in one step. Returns the sum.
std::uint32_t add_carelessly() {
  sys::Atomic<std::uint32_t> word{0};
  const auto add = [&word] {
    for (int i = 0; i < 3; ++i) word.store(word.load() + 1);
  };
  { sys::Thread one("one", add), two("two", add); }
  return word.load();
}

TEST(Scheduler, ManySeeds_ShowBothLostAndCompleteUpdatesOfARace) {
  for (const Strategy strategy : {Strategy::random, Strategy::priorities}) {
    std::set<std::uint32_t> sums;
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
      run(with_seed(seed, strategy), [&] { sums.insert(add_carelessly()); });
    }
    EXPECT_EQ(*sums.rbegin(), 6u);
    EXPECT_LE(*sums.begin(), 3u) << "of strategy " << static_cast<int>(strategy);
  }
}

TEST(Scheduler, SameSeed_GivesTheSameSchedule) {
  std::set<std::uint64_t> hashes;
  for (const Strategy strategy : {Strategy::random, Strategy::priorities}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const auto once = run(with_seed(seed, strategy), [] { add_carelessly(); });
      const auto again = run(with_seed(seed, strategy), [] { add_carelessly(); });
      EXPECT_EQ(once.hash, again.hash);
      EXPECT_EQ(once.points, again.points);
      hashes.insert(once.hash);
    }
  }
  EXPECT_GT(hashes.size(), 50u) << "different seeds are to be different schedules";
}

TEST(Scheduler, RecordedSchedule_ReplaysIdentically) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Options options = with_seed(seed, seed % 2 == 0 ? Strategy::random : Strategy::priorities);
    options.record = true;
    std::uint32_t sum = 0, repeated = 0;
    const Summary first = run(options, [&sum] { sum = add_carelessly(); });
    options.strategy = Strategy::replay;
    options.switches = first.recorded;
    const Summary second = run(options, [&repeated] { repeated = add_carelessly(); });
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.recorded, second.recorded);
    EXPECT_EQ(sum, repeated);
  }
}

TEST(Scheduler, AllThreadsWait_VirtualTimeAdvances) {
  const Summary summary = run(with_seed(1), [] {
    const std::int64_t start = sys::now_ns();
    sys::sleep_until(start + 3'600'000'000'000);
    EXPECT_GE(sys::now_ns(), start + 3'600'000'000'000);
    sys::Mutex mutex;
    sys::Condition condition;
    sys::Lock lock(mutex);
    const std::int64_t deadline = sys::now_ns() + 5'000;
    while (sys::now_ns() < deadline) condition.wait_until(lock, deadline);
  });
  EXPECT_GT(summary.virtual_ns, 3'600'000'000'000);
}

TEST(Scheduler, ContendedMutex_HasOneHolderAtATime) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    run(with_seed(seed), [] {
      sys::Mutex mutex;
      sys::Condition turned;
      int holders = 0, next = 0;
      const auto work = [&](int mine) {
        for (int i = 0; i < 3; ++i) {
          sys::Lock lock(mutex);
          while (next != mine) turned.wait(lock);
          EXPECT_EQ(++holders, 1);
          point(Operation::load);
          --holders;
          next = 1 - mine;
          turned.notify_all();
        }
      };
      sys::Thread one("one", [&] { work(0); }), two("two", [&] { work(1); });
    });
  }
}

TEST(Scheduler, AllThreadsBlocked_ExitReportNamesTheThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(with_seed(7),
                  [] {
                    sys::Atomic<std::uint32_t> word{0};
                    sys::Thread sleeper("sleeper", [&word] {
                      while (word.load() == 0) sys::wait(word, 0);
                    });
                  }),
              testing::ExitedWithCode(kStuck), "every thread waits(.|\n)*'sleeper': blocked");
}

TEST(Scheduler, ThreadThatPollsForever_IsReportedAsStuck) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(with_seed(7),
                  [] {
                    sys::Atomic<std::uint32_t> word{0};
                    while (word.load() == 0) sys::pause();
                  }),
              testing::ExitedWithCode(kStuck), "stuck");
}

/// A sleeper that looks for work before it says that it will sleep: the wake-up may get lost.
TEST(Scheduler, LostWakeUp_IsReportedAsABlockedThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        for (std::uint64_t seed = 1; seed <= 500; ++seed) {
          run(with_seed(seed, Strategy::priorities), [] {
            rt::Parking parking;
            sys::Atomic<bool> work{false};
            sys::Thread sleeper("sleeper", [&] {
              if (work.load()) return;
              parking.prepare();
              parking.park();
            });
            work.store(true);
            parking.unpark_one();
          });
        }
      },
      testing::ExitedWithCode(kStuck), "'sleeper': blocked");
}

}  // namespace
}  // namespace weir::schedule
