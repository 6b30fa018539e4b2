#include "share/throughput_meter.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

/// A place that takes `fixed` and `each` nanoseconds for a chunk and an item.
struct Clock {
  std::int64_t fixed, each, now = 0;

  void work(ThroughputMeter& meter, std::uint64_t items) {
    now += fixed + each * static_cast<std::int64_t>(items);
    meter.end(now, items, static_cast<double>(items));
  }
};

TEST(ThroughputMeter, KnowsTheSpeedAfterOneItem) {
  ThroughputMeter meter;
  Clock clock{0, 100};
  meter.begin(0);
  EXPECT_EQ(meter.speed(), 0);
  clock.work(meter, 1);
  EXPECT_DOUBLE_EQ(meter.speed(), 0.01);
}

TEST(ThroughputMeter, IdleTime_DoesNotLowerTheSpeed) {
  ThroughputMeter meter;
  Clock clock{0, 100};
  meter.begin(0);
  clock.work(meter, 1);
  clock.now += 5000;
  meter.begin(clock.now);
  clock.work(meter, 1);
  EXPECT_DOUBLE_EQ(meter.speed(), 0.01);
}

TEST(ThroughputMeter, TwoChunksAtOnce_DoubleTheMeasuredSpeed) {
  ThroughputMeter meter;  // two chunks of one item at once, 100 ns each
  meter.begin(0);
  for (std::int64_t end = 100; end <= 1000; end += 100) {
    meter.end(end, 1, 1);
    meter.end(end + 1, 1, 1);
  }
  EXPECT_NEAR(meter.speed(), 0.02, 0.001);
}

TEST(ThroughputMeter, PlaceBecomesSlower_SpeedFollowsWithinTwoItems) {
  ThroughputMeter meter;
  Clock clock{0, 100};
  meter.begin(0);
  for (int i = 0; i < 20; ++i) clock.work(meter, 1);
  clock.each = 1000;
  clock.work(meter, 1);
  clock.work(meter, 1);
  EXPECT_DOUBLE_EQ(meter.speed(), 0.001);
}

TEST(ThroughputMeter, FixedCostPerChunk_GrowsTheGrainWhileTheSpeedImproves) {
  ThroughputMeter meter;
  Clock clock{1000, 100};
  meter.begin(0);
  for (int i = 0; i < 20; ++i) clock.work(meter, meter.grain());
  EXPECT_EQ(meter.grain(), 64u);  // twice as many are less than a tenth faster
  ThroughputMeter even;
  Clock steady{0, 100};
  even.begin(0);
  for (int i = 0; i < 20; ++i) steady.work(even, even.grain());
  EXPECT_EQ(even.grain(), 1u);
}

TEST(ThroughputMeter, ChunksLargerThanTheGrain_DoNotStopItsGrowth) {
  ThroughputMeter meter;
  Clock clock{1000, 100};
  meter.begin(0);
  for (int i = 0; i < 10; ++i) clock.work(meter, 64);
  EXPECT_EQ(meter.grain(), 1u);
  for (int i = 0; i < 20; ++i) clock.work(meter, meter.grain());
  EXPECT_EQ(meter.grain(), 64u);
}

TEST(ThroughputMeter, PlaceBecomesSlower_GrainReturnsToOneItem) {
  ThroughputMeter meter;
  Clock clock{100, 100};
  meter.begin(0);
  for (int i = 0; i < 10; ++i) clock.work(meter, meter.grain());
  EXPECT_EQ(meter.grain(), 8u);
  clock.fixed = 0;
  for (clock.each = 300; clock.each <= 3000; clock.each += 300) {  // slower and slower
    clock.work(meter, 4);
    EXPECT_EQ(meter.grain(), 1u) << clock.each;
  }
}

}  // namespace
}  // namespace weir::rt
