#include "backends/cuda/cuda_stream_order.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

using Points = std::vector<CudaPoint>;

TEST(CudaStreamOrder, DependentChain_StaysInItsStreamWithoutWaits) {
  CudaStreamOrder order(4);
  CudaPoint last = order.append(order.choose(0, 4, {}));
  for (int i = 0; i < 100; ++i) {
    const Points before{last};
    const unsigned stream = order.choose(0, 4, before);
    EXPECT_EQ(stream, last.stream);
    EXPECT_TRUE(order.implied(stream, last));
    last = order.append(stream);
  }
}

TEST(CudaStreamOrder, IndependentJobs_AreSpreadOverLeastLoadedStreams) {
  CudaStreamOrder order(6);
  std::vector<unsigned> used;
  for (int i = 0; i < 4; ++i) used.push_back(order.append(order.choose(1, 4, {})).stream);
  EXPECT_EQ(used, (std::vector<unsigned>{1, 2, 3, 4}));
  order.advance(3, 1);
  EXPECT_EQ(order.choose(1, 4, {}), 3u);
}

TEST(CudaStreamOrder, EventWait_ImpliesTransitiveWaits) {
  CudaStreamOrder order(3);
  const CudaPoint a = order.append(0);
  const unsigned of_a = order.record(0);
  order.wait(1, 0, of_a);
  const CudaPoint b = order.append(1);
  EXPECT_FALSE(order.implied(2, a));
  order.wait(2, 1, order.record(1));
  EXPECT_TRUE(order.implied(2, b));
  EXPECT_TRUE(order.implied(2, a)) << "by way of stream 1";
  EXPECT_FALSE(order.implied(2, order.append(0)));
}

TEST(CudaStreamOrder, RecordedEvent_CoversAllEarlierJobsOfItsStream) {
  CudaStreamOrder order(2);
  const CudaPoint first = order.append(0), second = order.append(0);
  EXPECT_FALSE(order.recorded(first));
  const unsigned record = order.record(0);
  EXPECT_EQ(order.recorded(first), record);
  EXPECT_EQ(order.recorded(second), record);
  const CudaPoint third = order.append(0);
  EXPECT_FALSE(order.recorded(third));
  order.forget(0, record);
  EXPECT_FALSE(order.recorded(first));
}

TEST(CudaStreamOrder, FullRecordTable_OverwritesTheOldestRecord) {
  CudaStreamOrder order(1);
  for (unsigned i = 0; i < 3 * CudaStreamOrder::kRecords; ++i) {
    const CudaPoint point = order.append(0);
    EXPECT_EQ(order.record(0), i % CudaStreamOrder::kRecords);
    EXPECT_TRUE(order.recorded(point));
  }
}

TEST(CudaStreamOrder, CompletedPredecessor_ImposesNoWaitAndNoStream) {
  CudaStreamOrder order(2);
  const CudaPoint point = order.append(0);
  EXPECT_FALSE(order.implied(1, point));
  order.advance(0, point.epoch);
  EXPECT_TRUE(order.implied(1, point));
  const Points before{point};
  order.append(0);
  EXPECT_EQ(order.choose(0, 2, before), 1u) << "its stream has more to do";
}

}  // namespace
}  // namespace weir::rt
