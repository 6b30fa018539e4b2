// How many items the batches of a device get.
#include "pipeline/batch_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace weir::rt {
namespace {

/// A device that takes a time for each launch and for each item, with batches that wait for it;
/// then another part, such as a link, takes a time for each item.
class Device {
 public:
  Device(BatchTarget& target, std::int64_t launch_ns, std::int64_t item_ns,
         std::int64_t tail_ns = 0)
      : target_(target), launch_ns_(launch_ns), item_ns_(item_ns), tail_ns_(tail_ns) {}

  void set_item_ns(std::int64_t ns) { item_ns_ = ns; }
  /// Runs batches of the target's size, with so many in flight.
  void run(std::size_t batches, std::size_t in_flight) {
    for (std::size_t i = 0; i < batches; ++i) {
      while (waiting_.size() < in_flight) {
        waiting_.push_back({target_.items(), now_ns_});
        target_.note_launch();
      }
      complete();
    }
  }
  /// Runs batches of one size, each alone.
  void run_alone(std::size_t batches, std::size_t items) {
    while (!waiting_.empty()) complete();
    for (std::size_t i = 0; i < batches; ++i) {
      now_ns_ += 1'000'000;
      waiting_.push_back({items, now_ns_});
      complete();
    }
  }

 private:
  struct Batch {
    std::size_t items;
    std::int64_t launched_ns;
  };
  void complete() {
    const Batch batch = waiting_.front();
    waiting_.pop_front();
    const auto items = static_cast<std::int64_t>(batch.items);
    free_ns_ = std::max(free_ns_, batch.launched_ns) + launch_ns_ + items * item_ns_;
    now_ns_ = free_ns_ + items * tail_ns_;
    target_.note(batch.items, batch.launched_ns, now_ns_);
  }

  BatchTarget& target_;
  const std::int64_t launch_ns_;
  std::int64_t item_ns_;
  const std::int64_t tail_ns_;
  std::int64_t free_ns_ = 0, now_ns_ = 0;
  std::deque<Batch> waiting_;
};

/// Every 16th target is twice as large, to notice changes.
std::size_t steady(Device& device, const BatchTarget& target) {
  std::size_t least = SIZE_MAX;
  for (int i = 0; i < 4; ++i) {
    device.run(1, 4);
    least = std::min(least, target.items());
  }
  return least;
}

TEST(BatchTarget, SteadyDevice_LaunchCostIsAThirtySecondOfTheItemTime) {
  BatchTarget target(32, 16'384);
  Device device(target, 10'000, 250);
  device.run(40, 4);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), 32 * 10'000 / 250.0, 20);
}

/// What limits the device is its first part: the second ends a growing batch later.
TEST(BatchTarget, LinkBehindTheDevice_DoesNotChangeTheTarget) {
  BatchTarget target(32, 16'384);
  Device device(target, 10'000, 250, 200);
  device.run(40, 4);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), 32 * 10'000 / 250.0, 100);
}

TEST(BatchTarget, IdealAboveTheMaximum_TargetIsTheMaximum) {
  BatchTarget target(32, 500);
  Device device(target, 10'000, 250);
  device.run(40, 4);
  EXPECT_EQ(steady(device, target), 500u);
}

TEST(BatchTarget, LaunchBeforeTheFirstMeasurement_DoublesTheTarget) {
  BatchTarget target(10, 1'000);
  EXPECT_EQ(target.items(), 10u);
  target.note_launch();
  target.note_launch();
  EXPECT_EQ(target.items(), 40u);
  EXPECT_FALSE(target.measured());
  target.note(10, 0, 1'000);
  EXPECT_TRUE(target.measured());
  target.note_launch();
  EXPECT_EQ(target.items(), 80u);
}

TEST(BatchTarget, SlowItems_TargetIsOneItem) {
  BatchTarget target(256, 16'384);
  Device device(target, 10'000, 1'000'000);
  device.run(60, 4);
  EXPECT_EQ(steady(device, target), 1u);
}

TEST(BatchTarget, FollowsItemsThatBecomeSlowerOrFaster) {
  BatchTarget target(32, 16'384);
  Device device(target, 10'000, 250);
  device.run(60, 4);
  device.set_item_ns(2'500);
  device.run(120, 4);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), 128, 32);
  device.set_item_ns(250);
  device.run(120, 4);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), 1280, 320);
}

TEST(BatchTarget, BatchesOnAnIdleDevice_DoNotChangeTheTarget) {
  BatchTarget target(32, 16'384);
  Device device(target, 10'000, 250);
  device.run(40, 4);
  const std::size_t before = steady(device, target);
  device.run_alone(100, 1);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), static_cast<double>(before), 2);
}

TEST(BatchTarget, SizeSetByTheProgram_DoesNotChange) {
  BatchTarget target(100, 100);
  EXPECT_TRUE(target.measured());  // there is nothing to learn
  Device device(target, 10'000, 1);
  device.run(40, 4);
  EXPECT_EQ(target.items(), 100u);
  EXPECT_FALSE(target.costs().known());
}

BatchCosts measured_costs() {
  BatchTarget target(32, 16'384);
  Device device(target, 10'000, 250);
  device.run(40, 4);
  return target.costs();
}

TEST(BatchTarget, CostsOfAnEarlierTarget_AreWhereTheNextBegins) {
  const BatchCosts costs = measured_costs();
  EXPECT_NEAR(costs.launch_ns, 10'000, 200);
  EXPECT_NEAR(costs.item_ns, 250, 5);
  const BatchTarget next(32, 16'384, costs);
  EXPECT_TRUE(next.measured());
  EXPECT_EQ(next.items(), costs.target);
  EXPECT_EQ(BatchTarget(32, 100, costs).items(), 100u);
  EXPECT_EQ(BatchTarget(64, 64, costs).items(), 64u);  // set by the program
}

TEST(BatchTarget, KnownCostsThatAreNotTrueAnyMore_AreCorrected) {
  BatchTarget target(32, 16'384, measured_costs());
  Device device(target, 10'000, 2'500);
  device.run(120, 4);
  EXPECT_NEAR(static_cast<double>(steady(device, target)), 128, 32);
}

/// A target of 1280 items takes 32 launches' time: 1280 items that wait are best in 4 batches.
TEST(BatchTarget, FewItemsWait_BatchesArePartsThatOverlap) {
  const BatchTarget target(32, 16'384, measured_costs());
  const std::size_t items = target.items();
  EXPECT_EQ(target.items_of(items, 0), items / 4);
  EXPECT_EQ(target.items_of(16 * items, 0), items);
  EXPECT_EQ(target.items_of(100 * items, 0), items);
  EXPECT_EQ(target.items_of(items / 64, 0), items / 8);  // less is not worth a launch
  EXPECT_EQ(target.least(), items / 8);
}

TEST(BatchTarget, DeviceHasMoreThanWaits_BatchesAreNotDivided) {
  const BatchTarget target(32, 16'384, measured_costs());
  EXPECT_LT(target.items_of(1'000, 2'999), target.items());
  EXPECT_EQ(target.items_of(1'000, 3'000), target.items());
}

TEST(BatchTarget, UnknownCosts_BatchesAreNotDivided) {
  const BatchTarget target(32, 16'384);
  EXPECT_EQ(target.items_of(10, 0), 32u);
  EXPECT_EQ(target.least(), 32u);
}

}  // namespace
}  // namespace weir::rt
