#include "backends/cuda/cuda_lanes.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

using Points = std::vector<CudaPoint>;

TEST(CudaLanes, AChainStaysInItsLane) {
  CudaLanes lanes(4);
  CudaPoint last = lanes.append(lanes.choose(0, 4, {}));
  for (int i = 0; i < 100; ++i) {
    const Points before{last};
    const unsigned lane = lanes.choose(0, 4, before);
    EXPECT_EQ(lane, last.lane);
    EXPECT_TRUE(lanes.implied(lane, last));
    last = lanes.append(lane);
  }
}

TEST(CudaLanes, WhatIsIndependentSpreads) {
  CudaLanes lanes(6);
  std::vector<unsigned> used;
  for (int i = 0; i < 4; ++i) used.push_back(lanes.append(lanes.choose(1, 4, {})).lane);
  EXPECT_EQ(used, (std::vector<unsigned>{1, 2, 3, 4}));
  lanes.advance(3, 1);
  EXPECT_EQ(lanes.choose(1, 4, {}), 3u);
}

TEST(CudaLanes, AWaitImpliesWhatTheOtherWaitedFor) {
  CudaLanes lanes(3);
  const CudaPoint a = lanes.append(0);
  const unsigned of_a = lanes.record(0);
  lanes.wait(1, 0, of_a);
  const CudaPoint b = lanes.append(1);
  EXPECT_FALSE(lanes.implied(2, a));
  lanes.wait(2, 1, lanes.record(1));
  EXPECT_TRUE(lanes.implied(2, b));
  EXPECT_TRUE(lanes.implied(2, a)) << "by way of lane 1";
  EXPECT_FALSE(lanes.implied(2, lanes.append(0)));
}

TEST(CudaLanes, ARecordedEventServesAllBeforeIt) {
  CudaLanes lanes(2);
  const CudaPoint first = lanes.append(0), second = lanes.append(0);
  EXPECT_FALSE(lanes.recorded(first));
  const unsigned record = lanes.record(0);
  EXPECT_EQ(lanes.recorded(first), record);
  EXPECT_EQ(lanes.recorded(second), record);
  const CudaPoint third = lanes.append(0);
  EXPECT_FALSE(lanes.recorded(third));
  lanes.forget(0, record);
  EXPECT_FALSE(lanes.recorded(first));
}

TEST(CudaLanes, OldRecordsMakeRoom) {
  CudaLanes lanes(1);
  for (unsigned i = 0; i < 3 * CudaLanes::kRecords; ++i) {
    const CudaPoint point = lanes.append(0);
    EXPECT_EQ(lanes.record(0), i % CudaLanes::kRecords);
    EXPECT_TRUE(lanes.recorded(point));
  }
}

TEST(CudaLanes, WhatIsOverNeedsNoWait) {
  CudaLanes lanes(2);
  const CudaPoint point = lanes.append(0);
  EXPECT_FALSE(lanes.implied(1, point));
  lanes.advance(0, point.epoch);
  EXPECT_TRUE(lanes.implied(1, point));
  const Points before{point};
  lanes.append(0);
  EXPECT_EQ(lanes.choose(0, 2, before), 1u) << "its lane has more to do";
}

}  // namespace
}  // namespace weir::rt
