#include "fabric/wait_registry.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(WaitRegistry, ListsEachWaitOnce) {
  WaitRegistry registry;
  EXPECT_EQ(registry.state().waits, "");
  EXPECT_EQ(registry.state().since_ns, 0);
  WaitRegistry::Entry first(registry, "a barrier"), second(registry, "a message"),
      third(registry, "a message");
  first.enter();
  first.enter();
  second.enter();
  third.enter();
  EXPECT_EQ(registry.state().waits, "a barrier and a message");
  EXPECT_GT(registry.state().since_ns, 0);
}

TEST(WaitRegistry, IdleWait_IsListedButIsNotAStall) {
  WaitRegistry registry;
  WaitRegistry::Entry entry(registry, {"orders", true});
  entry.enter();
  EXPECT_EQ(registry.state().waits, "orders");
  EXPECT_EQ(registry.state().since_ns, 0);
}

TEST(WaitRegistry, RepeatedTimedOutWaits_CountAsOneUntilOneIsSatisfied) {
  WaitRegistry registry(sys::kNever);  // however long a pause is
  const auto wait = [&registry](bool ends) {
    WaitRegistry::Entry entry(registry, "a message");
    entry.enter();
    if (ends) entry.end();
    return registry.state();
  };
  const WaitRegistry::State first = wait(false);
  EXPECT_EQ(registry.state().since_ns, first.since_ns);
  EXPECT_EQ(registry.state().waits, "a message");
  while (sys::now_ns() == first.since_ns) sys::yield();
  const WaitRegistry::State second = wait(false);
  EXPECT_EQ(second.since_ns, first.since_ns);
  EXPECT_EQ(second.movement, first.movement);
  EXPECT_EQ(wait(true).since_ns, first.since_ns);
  EXPECT_EQ(registry.state().since_ns, 0);
  EXPECT_EQ(registry.state().waits, "");
  const WaitRegistry::State last = wait(false);
  EXPECT_GT(last.since_ns, first.since_ns);
  EXPECT_NE(last.movement, first.movement);
}

TEST(WaitRegistry, EntryThatNeverEntered_RecordsNoMovement) {
  WaitRegistry registry;
  const WaitRegistry::State before = registry.state();
  {
    WaitRegistry::Entry entry(registry, "a barrier");
    entry.end();
  }
  EXPECT_EQ(registry.state().movement, before.movement);
  registry.note_message();
  EXPECT_NE(registry.state().movement, before.movement);
}

}  // namespace
}  // namespace weir::rt
