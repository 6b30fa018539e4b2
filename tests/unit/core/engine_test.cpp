// The engine against a sequential oracle, driven without threads.
#include "core/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "core/buffer.hpp"

namespace weir::rt {
namespace {

constexpr std::size_t kBytes = 64;

/// Buffers, slots and an engine, for programs on single bytes.
class EngineTest : public testing::Test {
 protected:
  explicit EngineTest(weir_dependence_policy policy = WEIR_DEPENDENCE_POLICY_OPERANDS,
                      Ordering ordering = Ordering::host)
      : engine_(policy, ordering) {
    for (std::size_t i = 0; i < 3; ++i) {
      buffers_.emplace_back(nullptr, i + 1, "b" + std::to_string(i), nullptr, kBytes, true);
    }
  }

  struct Use {
    std::size_t buffer, offset, bytes;
    weir_access access;
    std::uint8_t memory = 0;
    std::uint32_t rows = 1;
    std::uint64_t stride = 0;
  };

  Action& make(ActionKind kind, const std::vector<Use>& uses, std::size_t events = 0) {
    Action& action = actions_.emplace_back();
    action.kind = kind;
    action.event.open(std::uint64_t{1} << Action::kSequenceBits | actions_.size());
    action.reserve(uses.size(), 0, events);
    for (EventWait& wait : action.events()) wait.action = &action;
    action.pending = static_cast<std::uint32_t>(events);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      Operand& operand = action.operands()[i];
      operand = Operand{};
      operand.offset = uses[i].offset;
      operand.row = uses[i].bytes;
      operand.rows = uses[i].rows;
      operand.row_stride = uses[i].stride;
      operand.memory = uses[i].memory;
      operand.access = static_cast<std::uint8_t>(uses[i].access);
      operand.buffer = &buffers_[uses[i].buffer];
    }
    return action;
  }

  Action& admit(ActionKind kind, const std::vector<Use>& uses) {
    Action& action = make(kind, uses);
    EXPECT_TRUE(engine_.accepts());
    EXPECT_FALSE(engine_.admit(action, false));
    return action;
  }

  std::vector<Action*> ready() {
    std::vector<Action*> list;
    while (Action* action = engine_.pop_external()) list.push_back(action);
    while (Action* action = engine_.pop_transfer()) list.push_back(action);
    while (Action* action = engine_.pop_compute()) list.push_back(action);
    return list;
  }
  std::vector<Action*> finished() {
    std::vector<Action*> list;
    while (Action* action = engine_.pop_finished()) list.push_back(action);
    return list;
  }
  void finish(Action& action, bool fails = false) {
    if (fails) fail(action);
    EXPECT_FALSE(engine_.finish(action));
  }
  static void fail(Action& action) {
    action.status = WEIR_STATUS_KERNEL_ERROR;
    action.failure =
        FailureRef::make(WEIR_STATUS_KERNEL_ERROR, "boom", "root", "test", action.id());
  }

  std::deque<Buffer> buffers_;
  std::deque<Action> actions_;
  Engine engine_;
};

constexpr auto R = WEIR_ACCESS_READ;
constexpr auto W = WEIR_ACCESS_WRITE;
constexpr auto RW = WEIR_ACCESS_READ_WRITE;
constexpr auto kCompute = ActionKind::compute;

TEST_F(EngineTest, IndependentActionsAreReadyAtOnce) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{0, 8, 8, W}});
  EXPECT_EQ(ready(), (std::vector{&a, &b}));
}

TEST_F(EngineTest, ConflictingReadsAndWrites_RunInProgramOrder) {
  Action& write = admit(kCompute, {{0, 0, 16, W}});
  Action& read1 = admit(kCompute, {{0, 0, 8, R}});
  Action& read2 = admit(kCompute, {{0, 8, 8, R}});
  Action& again = admit(kCompute, {{0, 4, 8, W}});
  EXPECT_EQ(ready(), std::vector{&write});
  finish(write);
  EXPECT_EQ(ready().size(), 2u);
  finish(read2);
  EXPECT_TRUE(ready().empty());
  finish(read1);
  EXPECT_EQ(ready(), std::vector{&again});
}

TEST_F(EngineTest, ReadersOfSharedBytes_AreReadyTogether) {
  for (int i = 0; i < 5; ++i) admit(kCompute, {{0, 0, 16, R}});
  EXPECT_EQ(ready().size(), 5u);
}

TEST_F(EngineTest, CompletedReaders_TakeNoMemoryInTheTable) {
  const auto mapped_pages = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    return pages;
  };
  constexpr std::uint64_t kReads = 4'000'000;
  constexpr std::size_t kFewPages = 2048;
  DependenceTable table;
  Action& read = make(kCompute, {{0, 0, 8, R}});
  FailureRef poison;
  const std::size_t before = mapped_pages();
  for (std::uint64_t sequence = 1; sequence <= kReads; ++sequence) {
    read.event.open(sequence);
    table.collect(
        read, [](std::uint64_t) { return false; }, [](std::uint64_t, bool) {}, poison);
    table.enter(read);
  }
  EXPECT_LT(mapped_pages(), before + kFewPages);
}

TEST_F(EngineTest, WritesToDifferentInstances_DoNotConflict) {
  admit(kCompute, {{0, 0, 16, W, 0}});
  admit(kCompute, {{0, 0, 16, W, 1}});
  admit(kCompute, {{1, 0, 16, W, 0}});
  EXPECT_EQ(ready().size(), 3u);
}

TEST_F(EngineTest, InterleavedStridesDoNotConflict) {
  admit(kCompute, {{0, 0, 4, W, 0, 8, 8}});
  admit(kCompute, {{0, 4, 4, W, 0, 8, 8}});
  EXPECT_EQ(ready().size(), 2u);
  admit(kCompute, {{0, 3, 2, R}});
  EXPECT_TRUE(ready().empty());
}

TEST_F(EngineTest, PendingBarrier_AdmitsNothingUntilEarlierActionsComplete) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& barrier = admit(ActionKind::barrier, {});
  EXPECT_FALSE(engine_.accepts());
  EXPECT_EQ(ready(), std::vector{&a});
  finish(a);
  EXPECT_TRUE(engine_.accepts());
  EXPECT_EQ(finished(), (std::vector{&a, &barrier}));
}

TEST_F(EngineTest, Marker_CompletesAfterEarlierActionsAndOrdersNoLaterOnes) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& marker = admit(ActionKind::marker, {});
  Action& b = admit(kCompute, {{1, 0, 8, W}});
  EXPECT_EQ(ready(), (std::vector{&a, &b}));
  finish(b);
  EXPECT_EQ(finished(), std::vector{&b});
  finish(a);
  EXPECT_EQ(finished(), (std::vector{&a, &marker}));
}

TEST_F(EngineTest, FailureOfALaterAction_DoesNotFailTheMarker) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& marker = admit(ActionKind::marker, {});
  Action& b = admit(kCompute, {{1, 0, 8, W}});
  ready();
  finish(b, true);
  finish(a);
  EXPECT_EQ(marker.status, WEIR_STATUS_OK);
}

TEST_F(EngineTest, PendingSyncWithOperands_DelaysOnlyConflictingActions) {
  Action& sync = make(ActionKind::sync, {{0, 0, 8, RW}});
  sync.pending = 1;  // one event
  EXPECT_FALSE(engine_.admit(sync, false));
  Action& after = admit(kCompute, {{0, 0, 8, R}});
  Action& beside = admit(kCompute, {{0, 8, 8, W}});
  EXPECT_EQ(ready(), std::vector{&beside});
  EventWait wait;
  wait.action = &sync;
  engine_.satisfy(wait, {});
  EXPECT_EQ(ready(), std::vector{&after});
}

TEST_F(EngineTest, FailedAction_PoisonsOnlyDependentsUntilTheDrain) {
  Action& root = admit(kCompute, {{0, 0, 8, W}});
  Action& reader = admit(kCompute, {{0, 0, 8, R}, {1, 0, 8, W}});
  Action& free = admit(kCompute, {{2, 0, 8, W}});
  ready();
  finish(root, true);
  EXPECT_EQ(reader.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(reader.failure.get(), root.failure.get());
  Action& late = admit(kCompute, {{1, 4, 8, R}});
  EXPECT_EQ(late.status, WEIR_STATUS_POISONED);
  finish(free);
  EXPECT_EQ(free.status, WEIR_STATUS_OK);
  Action& drain = admit(ActionKind::drain, {});
  EXPECT_EQ(drain.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(finished().size(), 5u);
  Action& again = admit(kCompute, {{1, 4, 8, R}});
  EXPECT_EQ(ready(), std::vector{&again});
}

TEST_F(EngineTest, AbandonedDrain_EndsWithTheFailureAndKeepsThePoison) {
  Action& root = admit(kCompute, {{0, 0, 8, W}});
  Action& given_up = admit(ActionKind::drain, {});
  EXPECT_TRUE(given_up.decide_fate(given_up.id(), DrainFate::abandoned));
  ready();
  finish(root, true);
  EXPECT_EQ(given_up.status, WEIR_STATUS_KERNEL_ERROR);
  Action& late = admit(kCompute, {{0, 0, 8, R}});
  EXPECT_EQ(late.status, WEIR_STATUS_POISONED);
  Action& drain = admit(ActionKind::drain, {});
  EXPECT_EQ(drain.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_FALSE(drain.decide_fate(drain.id(), DrainFate::abandoned));
  EXPECT_EQ(finished().size(), 4u);
}

TEST_F(EngineTest, FailedReader_PoisonsLaterWritersNotReaders) {
  Action& root = admit(kCompute, {{0, 0, 8, R}});
  ready();
  finish(root, true);
  Action& reader = admit(kCompute, {{0, 0, 8, R}});
  Action& writer = admit(kCompute, {{0, 0, 4, W}});
  EXPECT_EQ(ready(), std::vector{&reader});
  finish(reader);
  EXPECT_EQ(reader.status, WEIR_STATUS_OK);
  EXPECT_EQ(writer.status, WEIR_STATUS_POISONED);
}

TEST_F(EngineTest, BarrierAfterAFailure_PoisonsAllLaterActions) {
  Action& root = admit(kCompute, {{0, 0, 8, W}});
  ready();
  finish(root, true);
  EXPECT_EQ(admit(ActionKind::barrier, {}).status, WEIR_STATUS_POISONED);
  EXPECT_EQ(admit(kCompute, {{2, 0, 8, W}}).status, WEIR_STATUS_POISONED);
}

TEST_F(EngineTest, ClearPoisonWithAFailedEvent_Succeeds) {
  Action& clear = make(ActionKind::clear_poison, {{0, 0, 16, RW}});
  clear.failure = FailureRef::make(WEIR_STATUS_KERNEL_ERROR, "boom", "root", "test", 1);
  EXPECT_FALSE(engine_.admit(clear, false));
  EXPECT_EQ(clear.status, WEIR_STATUS_OK);
  Action& after = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&after});
}

TEST_F(EngineTest, InlineFastPath_SkipsTheWindowAndKeepsTheOrder) {
  Action& a = make(kCompute, {{0, 0, 8, W}});
  EXPECT_TRUE(engine_.admit(a, true));
  EXPECT_FALSE(engine_.accepts());
  EXPECT_TRUE(engine_.finish(a));
  Action& transfer = admit(ActionKind::transfer, {{0, 0, 8, R}, {0, 0, 8, W, 1}});
  EXPECT_EQ(ready(), std::vector{&transfer});
  Action& b = make(kCompute, {{0, 0, 8, W}});
  EXPECT_FALSE(engine_.admit(b, true));
  EXPECT_TRUE(ready().empty());
  finish(transfer);
  EXPECT_EQ(ready(), std::vector{&b});
}

TEST_F(EngineTest, FailureOnTheInlineFastPath_PoisonsLaterDependents) {
  Action& a = make(kCompute, {{0, 0, 8, W}});
  EXPECT_TRUE(engine_.admit(a, true));
  fail(a);
  EXPECT_TRUE(engine_.finish(a));
  Action& b = make(kCompute, {{0, 4, 8, R}});
  EXPECT_FALSE(engine_.admit(b, true));
  EXPECT_EQ(b.status, WEIR_STATUS_POISONED);
}

TEST_F(EngineTest, Cancel_EndsActionsThatHaveNotStarted) {
  Action& running = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&running});
  Action& parked = admit(kCompute, {{0, 0, 8, R}});
  Action& waiting = admit(kCompute, {{1, 0, 8, R}});
  engine_.cancel(FailureRef::make(WEIR_STATUS_CANCELLED, "cancelled", "c", "s", 1));
  EXPECT_TRUE(ready().empty());
  EXPECT_EQ(waiting.status, WEIR_STATUS_CANCELLED);
  finish(running);
  EXPECT_EQ(parked.status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(running.status, WEIR_STATUS_OK);
  EXPECT_EQ(finished().size(), 3u);
  EXPECT_TRUE(engine_.idle());
  EXPECT_EQ(admit(kCompute, {{0, 0, 8, R}}).status, WEIR_STATUS_OK);
}

TEST_F(EngineTest, CancelUpToASequence_SparesLaterActions) {
  Action& before = admit(kCompute, {{0, 0, 8, W}});
  Action& after = admit(kCompute, {{1, 0, 8, W}});
  engine_.cancel(FailureRef::make(WEIR_STATUS_CANCELLED, "cancelled", "c", "s", 1),
                 before.sequence());
  EXPECT_EQ(before.status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(ready(), std::vector{&after});
  EXPECT_EQ(after.status, WEIR_STATUS_OK);
}

/// What comes after a cancelled action knows only of that one.
TEST_F(EngineTest, CancelledActionsBetween_FailureStillPoisonsDependents) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&a});
  Action& b = admit(kCompute, {{0, 0, 8, RW}, {1, 0, 8, W}});
  Action& c = admit(kCompute, {{0, 0, 8, RW}});
  engine_.cancel(FailureRef::make(WEIR_STATUS_CANCELLED, "cancelled", "c", "s", 1), c.sequence());
  Action& reader = admit(kCompute, {{0, 4, 2, R}});
  Action& other = admit(kCompute, {{1, 0, 8, R}});
  finish(a, true);
  EXPECT_EQ(b.status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(c.status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(reader.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(ready(), std::vector{&other});
  EXPECT_EQ(other.status, WEIR_STATUS_OK);
}

class FifoEngineTest : public EngineTest {
 protected:
  FifoEngineTest() : EngineTest(WEIR_DEPENDENCE_POLICY_FIFO) {}
};

TEST_F(FifoEngineTest, AcceptsNoActionUntilThePreviousCompletes) {
  Action& a = admit(kCompute, {{0, 0, 8, R}});
  EXPECT_FALSE(engine_.accepts());
  ready();
  finish(a);
  EXPECT_TRUE(engine_.accepts());
}

class FreeEngineTest : public EngineTest {
 protected:
  FreeEngineTest() : EngineTest(WEIR_DEPENDENCE_POLICY_NONE) {}
};

TEST_F(FreeEngineTest, ConflictingActions_AreReadyAtOnceExceptBehindBarriers) {
  admit(kCompute, {{0, 0, 8, W}});
  admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready().size(), 2u);
  admit(ActionKind::barrier, {});
  EXPECT_FALSE(engine_.accepts());
}

TEST_F(FreeEngineTest, ActionsBehindAFailedBarrier_AreNotPoisoned) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& barrier = admit(ActionKind::barrier, {});
  ready();
  finish(a, true);
  EXPECT_EQ(barrier.status, WEIR_STATUS_POISONED);
  Action& b = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&b});
  finish(b);
  EXPECT_EQ(b.status, WEIR_STATUS_OK);
  EXPECT_EQ(admit(ActionKind::barrier, {}).status, WEIR_STATUS_POISONED);
}

/// With a device that orders jobs.
class DeviceEngineTest : public EngineTest {
 protected:
  explicit DeviceEngineTest(weir_dependence_policy policy = WEIR_DEPENDENCE_POLICY_OPERANDS)
      : EngineTest(policy, Ordering::device) {}

  /// Submits an action and returns the numbers of the jobs it waits for.
  std::set<std::uint64_t> submit(Action& action, std::uint64_t number) {
    std::set<std::uint64_t> waits;
    engine_.each_awaited_submission(action, [&](std::uint64_t earlier) { waits.insert(earlier); });
    engine_.mark_submitted(action, number);
    return waits;
  }
  using Numbers = std::set<std::uint64_t>;
};

TEST_F(DeviceEngineTest, ChainOfSubmittedActions_IsReadyBeforeItsFirstCompletes) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{0, 0, 8, RW}});
  Action& c = admit(ActionKind::transfer, {{0, 4, 2, R}, {1, 0, 2, W}});
  EXPECT_EQ(ready(), std::vector{&a});
  EXPECT_EQ(submit(a, 1), Numbers{});
  EXPECT_EQ(ready(), std::vector{&b});
  EXPECT_EQ(submit(b, 2), Numbers{1});
  EXPECT_EQ(ready(), std::vector{&c});
  EXPECT_EQ(submit(c, 3), Numbers{2});
  finish(c);
  finish(b);
  EXPECT_TRUE(finished().empty());
  finish(a);
  EXPECT_EQ(finished(), (std::vector{&a, &b, &c}));
  EXPECT_TRUE(engine_.idle());
}

/// The device knows of the event's job, and may report those behind it before the event completes.
TEST_F(DeviceEngineTest, JobReturnedBeforeItsEventCompletes_FinishesAfterTheEvent) {
  Action& a = actions_.emplace_back();
  a.kind = kCompute;
  a.event.open(std::uint64_t{1} << Action::kSequenceBits | actions_.size());
  a.reserve(0, 0, 1);
  EventWait& wait = a.events()[0];
  wait.action = &a;
  wait.submission_id = 7;
  a.pending = 1;
  EXPECT_FALSE(engine_.admit(a, false));
  EXPECT_EQ(ready(), std::vector{&a});
  EXPECT_EQ(submit(a, 8), Numbers{7});
  finish(a);
  EXPECT_TRUE(finished().empty());
  engine_.satisfy(wait, {});
  EXPECT_EQ(finished(), std::vector{&a});
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, SyncOnSubmittedJobs_ForwardsTheirSubmissionIds) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{1, 0, 8, W}});
  admit(ActionKind::sync, {{0, 0, 8, RW}, {1, 0, 8, RW}});
  Action& c = admit(kCompute, {{1, 0, 8, R}});
  ready();
  submit(a, 1);
  EXPECT_TRUE(ready().empty());
  submit(b, 2);
  EXPECT_EQ(ready(), std::vector{&c});
  EXPECT_EQ(submit(c, 3), (Numbers{1, 2}));
  finish(a);
  finish(b);
  finish(c);
  EXPECT_EQ(finished().size(), 4u);
}

/// One of what a sync waits for has failed, the other is still to be over.
TEST_F(DeviceEngineTest, SyncWithAFailedPredecessor_PoisonsUnsubmittedDependents) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{1, 0, 8, W}});
  admit(ActionKind::sync, {{0, 0, 8, RW}, {1, 0, 8, RW}});
  Action& c = admit(kCompute, {{1, 0, 8, R}});
  EXPECT_EQ(ready(), (std::vector{&a, &b}));
  submit(a, 1);
  submit(b, 2);
  finish(a, true);
  EXPECT_TRUE(ready().empty());
  finish(b);
  EXPECT_EQ(c.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(finished().size(), 4u);
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, ActionRequeuedAsHostOrdered_WaitsUntilPredecessorsComplete) {
  for (const bool fails : {false, true}) {
    Action& a = admit(kCompute, {{0, 0, 8, W}});
    Action& b = admit(kCompute, {{0, 0, 8, RW}});
    EXPECT_EQ(ready(), std::vector{&a});
    submit(a, 1);
    EXPECT_EQ(ready(), std::vector{&b});
    engine_.requeue_host_ordered(b);
    EXPECT_TRUE(ready().empty());
    finish(a, fails);
    EXPECT_EQ(ready(), fails ? std::vector<Action*>() : std::vector{&b});
    if (!fails) finish(b);
    EXPECT_EQ(b.status, fails ? WEIR_STATUS_POISONED : WEIR_STATUS_OK);
    EXPECT_EQ(finished(), (std::vector{&a, &b}));
  }
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, SyncWithUnsubmittedEvent_HoldsBackDependents) {
  Action& sync = make(ActionKind::sync, {{0, 0, 8, RW}}, 1);
  EventWait& wait = sync.events()[0];
  EXPECT_FALSE(engine_.admit(sync, false));
  Action& a = admit(kCompute, {{0, 0, 8, R}});
  EXPECT_TRUE(ready().empty());
  engine_.mark_event_submitted(wait, 7);
  EXPECT_EQ(ready(), std::vector{&a});
  EXPECT_EQ(submit(a, 8), Numbers{7});
  engine_.satisfy(wait, {});
  finish(a);
  EXPECT_EQ(finished(), (std::vector{&sync, &a}));
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, BarrierOnSubmittedJobs_ForwardsTheirSubmissionIds) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{0, 0, 8, RW}});
  Action& c = admit(kCompute, {{1, 0, 8, W}});
  Action& barrier = admit(ActionKind::barrier, {});
  Action& d = admit(kCompute, {{2, 0, 8, W}});
  EXPECT_EQ(ready(), (std::vector{&a, &c}));
  submit(a, 1);
  submit(c, 2);
  EXPECT_EQ(ready(), std::vector{&b});
  submit(b, 3);
  EXPECT_EQ(ready(), std::vector{&d});
  EXPECT_EQ(submit(d, 4), (Numbers{2, 3}));  // the first is before the third anyhow
  for (Action* action : {&a, &b, &c}) finish(*action);
  EXPECT_EQ(finished(), (std::vector{&a, &b, &c, &barrier}));
  finish(d);
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, BarrierOnManyJobs_ForwardsALimitedNumberOfSubmissionIds) {
  constexpr std::size_t kMany = 40;
  std::vector<Action*> before;
  for (std::size_t i = 0; i < kMany; ++i) before.push_back(&admit(kCompute, {{0, i, 1, W}}));
  admit(ActionKind::barrier, {});
  Action& after = admit(kCompute, {{1, 0, 8, W}});
  EXPECT_EQ(ready(), before);
  for (std::size_t i = 0; i < kMany; ++i) submit(*before[i], i + 1);
  std::size_t over = 0;
  while (!engine_.has_ready() && over < kMany) finish(*before[over++]);
  EXPECT_EQ(ready(), std::vector{&after});
  EXPECT_GT(over, 0u);
  EXPECT_LT(over, kMany);
  EXPECT_EQ(submit(after, kMany + 1).size(), kMany - over);
}

TEST_F(DeviceEngineTest, JobPoisonedByTheDevice_PoisonsUnsubmittedDependents) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& b = admit(kCompute, {{0, 0, 8, RW}});
  Action& c = admit(kCompute, {{0, 0, 8, RW}});
  ready();
  submit(a, 1);
  ready();
  submit(b, 2);
  finish(a, true);
  b.status = WEIR_STATUS_POISONED;  // as the device says that has not run it
  finish(b);
  EXPECT_TRUE(ready().empty());
  EXPECT_EQ(b.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(c.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(finished().size(), 3u);
}

TEST_F(DeviceEngineTest, CancelledActionBetween_FailureStillPoisonsDependents) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&a});
  submit(a, 1);
  Action& b = admit(kCompute, {{0, 0, 8, RW}});
  engine_.cancel(FailureRef::make(WEIR_STATUS_CANCELLED, "cancelled", "c", "s", 1), b.sequence());
  Action& c = admit(kCompute, {{0, 0, 8, R}});
  EXPECT_TRUE(ready().empty());
  finish(a, true);
  EXPECT_EQ(b.status, WEIR_STATUS_CANCELLED);
  EXPECT_EQ(c.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(finished(), (std::vector{&a, &b, &c}));
  EXPECT_TRUE(engine_.idle());
}

TEST_F(DeviceEngineTest, HostOrderedAction_WaitsUntilPredecessorsComplete) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& transfer = make(ActionKind::transfer, {{0, 0, 8, R}, {1, 0, 8, W}});
  transfer.host_ordered = true;
  engine_.admit(transfer, false);
  Action& b = admit(kCompute, {{1, 0, 8, R}});
  ready();
  submit(a, 1);
  EXPECT_TRUE(ready().empty());
  finish(a);
  EXPECT_EQ(ready(), std::vector{&transfer});
  EXPECT_TRUE(ready().empty());
  finish(transfer);
  EXPECT_EQ(ready(), std::vector{&b});
}

class DeviceFifoTest : public DeviceEngineTest {
 protected:
  DeviceFifoTest() : DeviceEngineTest(WEIR_DEPENDENCE_POLICY_FIFO) {}
};

TEST_F(DeviceFifoTest, EachJob_WaitsForThePreviousAndInheritsItsFailure) {
  Action& a = admit(kCompute, {{0, 0, 8, R}});
  Action& b = admit(kCompute, {{1, 0, 8, R}});
  EXPECT_EQ(ready(), std::vector{&a});
  submit(a, 1);
  EXPECT_EQ(ready(), std::vector{&b});
  EXPECT_EQ(submit(b, 2), Numbers{1});
  finish(a, true);
  finish(b);
  EXPECT_EQ(b.status, WEIR_STATUS_POISONED);
}

class DeviceFreeTest : public DeviceEngineTest {
 protected:
  DeviceFreeTest() : DeviceEngineTest(WEIR_DEPENDENCE_POLICY_NONE) {}
};

TEST_F(DeviceFreeTest, ActionsBehindAFailedBarrier_RunWheneverAdmitted) {
  Action& a = admit(kCompute, {{0, 0, 8, W}});
  Action& first = admit(ActionKind::barrier, {});
  Action& b = admit(kCompute, {{0, 0, 8, W}});
  Action& second = admit(ActionKind::barrier, {});
  EXPECT_EQ(ready(), std::vector{&a});
  submit(a, 1);
  EXPECT_TRUE(ready().empty());  // the device would see the failure
  finish(a, true);
  EXPECT_EQ(first.status, WEIR_STATUS_POISONED);
  Action& c = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&b});
  finish(b);
  EXPECT_EQ(b.status, WEIR_STATUS_OK);
  EXPECT_EQ(second.status, WEIR_STATUS_POISONED);
  EXPECT_EQ(ready(), std::vector{&c});
  finish(c);
  EXPECT_EQ(c.status, WEIR_STATUS_OK);
  Action& late = admit(kCompute, {{0, 0, 8, W}});
  EXPECT_EQ(ready(), std::vector{&late});
  finish(late);
  EXPECT_EQ(finished().size(), 6u);
  EXPECT_TRUE(engine_.idle());
}

/// Random programs: what is handed out never conflicts with what is earlier and not over, whatever
/// may run is handed out, every action ends once, and poison is what the sequential rule says.
class RandomEngineTest : public EngineTest, public testing::WithParamInterface<std::uint64_t> {
 protected:
  explicit RandomEngineTest(Ordering ordering = Ordering::host)
      : EngineTest(WEIR_DEPENDENCE_POLICY_OPERANDS, ordering) {}

  struct Bytes {
    std::set<std::size_t> read, written;
  };

  static std::size_t key(const Operand& operand, std::uint64_t byte) {
    return (operand.buffer->id() * 8 + operand.memory) * 4096 + byte;
  }
  static Bytes bytes_of(const Action& action) {
    Bytes bytes;
    for (const Operand& operand : action.operands()) {
      for (std::uint64_t row = 0; row < operand.rows; ++row) {
        for (std::uint64_t byte = 0; byte < operand.row; ++byte) {
          const auto at = key(operand, operand.offset + row * operand.row_stride + byte);
          (operand.writes() ? bytes.written : bytes.read).insert(at);
        }
      }
    }
    return bytes;
  }
  static bool meet(const std::set<std::size_t>& a, const std::set<std::size_t>& b) {
    return std::any_of(a.begin(), a.end(), [&](std::size_t at) { return b.contains(at); });
  }
  static bool conflict(const Bytes& a, const Bytes& b) {
    return meet(a.written, b.written) || meet(a.written, b.read) || meet(a.read, b.written);
  }

  std::size_t below(std::size_t limit) { return random_() % limit; }

  Use random_use() {
    Use use{below(3), below(40), 1 + below(8), static_cast<weir_access>(1 + below(3)),
            static_cast<std::uint8_t>(below(2))};
    if (below(3) == 0) {
      use.rows = static_cast<std::uint32_t>(1 + below(3));
      use.stride = use.rows > 1 ? use.bytes + below(4) : 0;
      use.offset = below(24);
    }
    return use;
  }

  std::mt19937_64 random_;
};

TEST_P(RandomEngineTest, OrderAndPoison_MatchSequentialExecution) {
  random_.seed(GetParam());
  const std::size_t count = 1 + below(60);
  const bool failures = below(3) == 0;
  std::map<const Action*, std::size_t> index;
  std::vector<Bytes> bytes;
  std::vector<bool> over(count), should_fail(count), bad(count);
  std::vector<Action*> running;
  std::size_t admitted = 0, ended = 0;

  const auto check_handed_out = [&](Action& action) {
    const std::size_t at = index.at(&action);
    for (std::size_t earlier = 0; earlier < at; ++earlier) {
      if (over[earlier]) continue;
      ASSERT_FALSE(conflict(bytes[earlier], bytes[at]))
          << "seed " << GetParam() << ": " << at << " passes " << earlier;
    }
  };
  const auto step = [&] {
    for (Action* action : finished()) {
      const std::size_t at = index.at(action);
      ASSERT_FALSE(over[at]) << "seed " << GetParam() << ": " << at << " ends twice";
      over[at] = true;
      ++ended;
      ASSERT_EQ(action->status != WEIR_STATUS_OK, bad[at])
          << "seed " << GetParam() << ": status of " << at;
    }
    for (Action* action : ready()) {
      check_handed_out(*action);
      running.push_back(action);
    }
  };
  while (ended < count) {
    const bool admits = admitted < count && (running.empty() || below(2) == 0);
    if (admits) {
      std::vector<Use> uses;
      for (std::size_t i = below(4); i > 0; --i) uses.push_back(random_use());
      Action& action = make(kCompute, uses);
      const std::size_t at = admitted++;
      index[&action] = at;
      bytes.push_back(bytes_of(action));
      should_fail[at] = failures && below(6) == 0;
      bad[at] = should_fail[at];
      for (std::size_t earlier = 0; earlier < at; ++earlier) {
        bad[at] = bad[at] || (bad[earlier] && conflict(bytes[earlier], bytes[at]));
      }
      engine_.admit(action, false);
    } else {
      ASSERT_FALSE(running.empty()) << "seed " << GetParam() << ": stuck";
      const std::size_t pick = below(running.size());
      Action& action = *running[pick];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(pick));
      finish(action, should_fail[index.at(&action)]);
    }
    step();
  }
  EXPECT_TRUE(engine_.idle());
}

/// The same with a device that orders jobs: it runs a job when the jobs that this waits for are
/// complete, and reports that later, in any order.
class RandomDeviceTest : public RandomEngineTest {
 protected:
  RandomDeviceTest() : RandomEngineTest(Ordering::device) {}

  enum class State { waiting, submitted, ran, over };
  struct Record {
    Action* action = nullptr;
    Bytes bytes;
    State state = State::waiting;
    unsigned barriers = 0;  ///< up to this
    bool should_fail = false, bad = false, failed = false;
    std::uint64_t number = 0;
    std::vector<std::uint64_t> waits;
  };

  static bool runs(const Record& record) {
    const ActionKind kind = record.action->kind;
    return kind == kCompute || kind == ActionKind::transfer;
  }
  bool ordered(const Record& earlier, const Record& later) const {
    return earlier.barriers != later.barriers || earlier.action->kind == ActionKind::barrier ||
           conflict(earlier.bytes, later.bytes);
  }
  ActionKind random_kind() {
    const ActionKind kinds[] = {kCompute, kCompute, ActionKind::transfer, ActionKind::sync};
    if (orders_ && below(10) == 0) return ActionKind::barrier;
    return orders_ && below(20) == 0 ? ActionKind::marker : kinds[below(4)];
  }

  void admit_next(bool failures) {
    const ActionKind kind = random_kind();
    const bool orders = kind == ActionKind::barrier || kind == ActionKind::marker;
    std::vector<Use> uses;
    for (std::size_t i = orders ? 0 : 1 + below(3); i > 0; --i) uses.push_back(random_use());
    if (kind == ActionKind::barrier) ++barriers_;
    Record record{.action = &make(kind, uses), .bytes = {}, .barriers = barriers_, .waits = {}};
    record.bytes = bytes_of(*record.action);
    record.action->host_ordered = kind == ActionKind::transfer && below(4) == 0;
    record.should_fail = failures && runs(record) && below(6) == 0;
    record.bad = record.should_fail;
    for (const Record& earlier : records_) {
      record.bad = record.bad || (earlier.bad && (orders || ordered(earlier, record)));
    }
    index_[record.action] = records_.size();
    records_.push_back(std::move(record));
    engine_.admit(*records_.back().action, false);
  }

  void hand_out() {
    for (Action* const action : ready()) {
      Record& record = records_[index_.at(action)];
      if (!action->host_ordered) {
        record.number = ++submitted_;
        engine_.each_awaited_submission(*action,
                                        [&](std::uint64_t job) { record.waits.push_back(job); });
        engine_.mark_submitted(*action, record.number);
      }
      record.state = State::submitted;
      in_flight_.push_back(&record - records_.data());
    }
  }

  const Record& job(std::uint64_t number) const {
    return *std::find_if(records_.begin(), records_.end(),
                         [&](const Record& record) { return record.number == number; });
  }

  /// The device runs a job if it may.
  void run(std::size_t at) {
    Record& record = records_[at];
    bool poisoned = false;
    for (const std::uint64_t wait : record.waits) {
      if (job(wait).state < State::ran) return;
      poisoned = poisoned || job(wait).failed;
    }
    for (std::size_t earlier = 0; earlier < at && !poisoned; ++earlier) {
      const Record& other = records_[earlier];
      const bool gone = other.state >= State::ran || !runs(other);
      ASSERT_TRUE(gone || !ordered(other, record))
          << "seed " << GetParam() << ": " << at << " passes " << earlier;
    }
    ASSERT_FALSE(!poisoned && record.bad && !record.should_fail)
        << "seed " << GetParam() << ": " << at << " runs after a failure";
    record.failed = poisoned || record.should_fail;
    record.state = State::ran;
    if (poisoned) record.action->status = WEIR_STATUS_POISONED;
  }

  void check_finished() {
    for (Action* const action : finished()) {
      Record& record = records_[index_.at(action)];
      ASSERT_NE(record.state, State::over) << "seed " << GetParam() << ": ends twice";
      record.state = State::over;
      ++ended_;
      ASSERT_EQ(action->status != WEIR_STATUS_OK, record.bad)
          << "seed " << GetParam() << ": status of " << index_.at(action);
      ASSERT_EQ(static_cast<bool>(action->failure), record.bad);
    }
  }

  std::vector<Record> records_;
  std::map<const Action*, std::size_t> index_;
  std::vector<std::ptrdiff_t> in_flight_;
  bool orders_ = false;  ///< there are barriers and markers
  unsigned barriers_ = 0;
  std::uint64_t submitted_ = 0;
  std::size_t ended_ = 0;
};

TEST_P(RandomDeviceTest, OrderAndPoison_MatchSequentialExecution) {
  random_.seed(GetParam());
  const std::size_t count = 1 + below(60);
  const bool failures = below(3) == 0;
  orders_ = below(2) == 0;
  records_.reserve(count);
  while (ended_ < count && !HasFatalFailure()) {
    if (records_.size() < count && (in_flight_.empty() || below(2) == 0)) {
      admit_next(failures);
    } else {
      ASSERT_FALSE(in_flight_.empty()) << "seed " << GetParam() << ": stuck";
      const auto pick = static_cast<std::ptrdiff_t>(below(in_flight_.size()));
      const auto at = static_cast<std::size_t>(in_flight_[static_cast<std::size_t>(pick)]);
      if (records_[at].state == State::submitted) {
        run(at);
      } else {
        in_flight_.erase(in_flight_.begin() + pick);
        finish(*records_[at].action,
               records_[at].should_fail && records_[at].action->status == WEIR_STATUS_OK);
      }
    }
    check_finished();
    hand_out();
    check_finished();
  }
  EXPECT_TRUE(engine_.idle());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeviceTest, testing::Range<std::uint64_t>(0, 5000));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomEngineTest, testing::Range<std::uint64_t>(0, 5000));

}  // namespace
}  // namespace weir::rt
