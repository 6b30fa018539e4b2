#include "backends/sim/sim_clock.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::rt {
namespace {

TEST(SimClock, StandsStillUntilDriven) {
  SimClock clock;
  clock.schedule(50, [] {});
  EXPECT_EQ(clock.now_ns(), 0);
  EXPECT_TRUE(clock.drive());
  EXPECT_EQ(clock.now_ns(), 50);
  EXPECT_FALSE(clock.drive());
  EXPECT_EQ(clock.now_ns(), 50);
}

TEST(SimClock, EventsRunInOrderOfTimeThenOfScheduling) {
  SimClock clock;
  std::string order;
  clock.schedule(20, [&] { order += 'c'; });
  clock.schedule(10, [&] { order += 'a'; });
  clock.schedule(20, [&] { order += 'd'; });
  clock.schedule(10, [&] { order += 'b'; });
  while (clock.drive()) {
  }
  EXPECT_EQ(order, "abcd");
}

TEST(SimClock, EventScheduledInThePast_RunsAtTheCurrentTime) {
  SimClock clock;
  std::int64_t happened = -1;
  clock.schedule(100, [&] { clock.schedule(10, [&] { happened = clock.now_ns(); }); });
  while (clock.drive()) {
  }
  EXPECT_EQ(happened, 100);
}

TEST(SimClock, TimerSetTwice_ExpiresOnceAtTheTimeSetLast) {
  struct Alarm final : SimClock::Timer {
    Alarm(SimClock& owner, std::string& word, char letter)
        : clock(owner), order(word), name(letter) {
      clock.add(*this);
    }
    ~Alarm() { clock.remove(*this); }
    void expired() noexcept override { order += name; }
    SimClock& clock;
    std::string& order;
    char name;
  };
  SimClock clock;
  std::string order;
  Alarm a(clock, order, 'a'), b(clock, order, 'b'), never(clock, order, 'c');
  clock.set(a, 10);
  clock.set(b, 50);
  clock.schedule(20, [&] { order += 'x'; });
  clock.set(a, 20);  // later, and after the event of that time
  clock.set(b, 15);  // earlier
  EXPECT_TRUE(clock.drive());
  EXPECT_EQ(clock.now_ns(), 15);
  while (clock.drive()) {
  }
  EXPECT_EQ(order, "bxa");
  EXPECT_EQ(clock.now_ns(), 20);
  clock.set(a, 5);  // in the past: now
  EXPECT_TRUE(clock.drive());
  EXPECT_FALSE(clock.drive());
  EXPECT_EQ(order, "bxaa");
  EXPECT_EQ(clock.now_ns(), 20);
}

TEST(SimClock, ActorsActBeforeTheNextEvent) {
  struct Starter final : SimClock::Actor {
    explicit Starter(SimClock& owner) : clock(owner) { clock.add(*this); }
    ~Starter() { clock.remove(*this); }
    void act() noexcept override {
      if (left-- > 0) clock.schedule(clock.now_ns() + 5, [] {});
    }
    SimClock& clock;
    int left = 3;
  };
  SimClock clock;
  {
    Starter starter(clock);
    while (clock.drive()) {
    }
    EXPECT_EQ(clock.now_ns(), 15);
  }
  EXPECT_FALSE(clock.drive());
}

TEST(SimClock, ActorRemovedByAnother_LaterActorsStillAct) {
  struct Idle final : SimClock::Actor {
    void act() noexcept override {}
  } first;
  struct Remover final : SimClock::Actor {
    explicit Remover(SimClock& owner, SimClock::Actor& actor) : clock(owner), victim(actor) {}
    void act() noexcept override { clock.remove(victim); }
    SimClock& clock;
    SimClock::Actor& victim;
  };
  struct Starter final : SimClock::Actor {
    explicit Starter(SimClock& owner) : clock(owner) {}
    void act() noexcept override {
      if (clock.now_ns() == 0) clock.schedule(5, [] {});
    }
    SimClock& clock;
  };
  SimClock clock;
  Remover second(clock, first);
  Starter third(clock);
  clock.add(first);
  clock.add(second);
  clock.add(third);
  clock.schedule(10, [] {});
  EXPECT_TRUE(clock.drive());
  EXPECT_EQ(clock.now_ns(), 5);
  clock.remove(second);
  clock.remove(third);
}

}  // namespace
}  // namespace weir::rt
