#include "share/ideal_time.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

double of(const std::vector<PlaceWork>& places) { return ideal_ns(places); }

TEST(IdealTime, IsTheWorkOverTheSumOfTheSpeeds) {
  EXPECT_DOUBLE_EQ(of({}), 0);
  EXPECT_DOUBLE_EQ(of({{0, 0}}), 0);
  EXPECT_DOUBLE_EQ(of({{100, 100}, {200, 100}}), 100);
  EXPECT_DOUBLE_EQ(of({{100, 100}, {200, 100}, {0, 0}, {0, 0, true}}), 100);
  EXPECT_DOUBLE_EQ(of({{50, 100}, {200, 100}}), 100);
}

TEST(IdealTime, LostPlace_LeavesItsRemainingWorkToTheOthers) {
  EXPECT_DOUBLE_EQ(of({{80, 80}, {20, 20, true}}), 80);
  EXPECT_DOUBLE_EQ(of({{60, 60}, {40, 20, true}, {10, 10, true}}), 60);
  EXPECT_DOUBLE_EQ(of({{60, 60}, {0, 20, true}}), 60);
  // Lost later than all would be done together.
  EXPECT_DOUBLE_EQ(of({{10, 10}, {90, 90, true}}), 50);
  EXPECT_DOUBLE_EQ(of({{10, 10}, {90, 90, true}, {5, 5, true}}), 50);
}

TEST(IdealTime, AllPlacesLost_IsTheTimeOfTheLastThatWorked) {
  EXPECT_DOUBLE_EQ(of({{30, 10, true}, {90, 60, true}}), 60);
  EXPECT_DOUBLE_EQ(of({{30, 10, true}, {0, 60, true}, {0, 70}}), 10);
}

}  // namespace
}  // namespace weir::rt
