#include "tasks/core_times.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(CoreTimes, EqualTasksOnAllCores_EndAtTheSameTime) {
  CoreTimes cores(3);
  for (int i = 0; i < 3; ++i) cores.occupy(0, 100);
  EXPECT_EQ(cores.first_free_ns(), 100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cores.first_free_ns(), 100);
    cores.occupy(0, 100);
  }
  EXPECT_EQ(cores.first_free_ns(), 200);
}

TEST(CoreTimes, TheFirstFreeCoreTakesTheNextTask) {
  CoreTimes cores(4);
  for (const int run : {40, 10, 30, 20}) cores.occupy(0, run);
  for (const int free : {10, 20, 30, 40}) {
    EXPECT_EQ(cores.first_free_ns(), free);
    cores.occupy(0, 1000);
  }
  EXPECT_EQ(cores.first_free_ns(), 1010);
}

TEST(CoreTimes, AParallelTaskWaitsForAllCoresAndTakesThem) {
  CoreTimes cores(3);
  cores.occupy(0, 10);
  cores.occupy(0, 40);
  EXPECT_EQ(cores.first_free_ns(), 0);
  EXPECT_EQ(cores.all_free_ns(), 40);
  cores.occupy_all(20, 5);
  EXPECT_EQ(cores.first_free_ns(), 45);
  EXPECT_EQ(cores.all_free_ns(), 45);
  cores.occupy_all(100, 5);
  EXPECT_EQ(cores.first_free_ns(), 105);
}

TEST(CoreTimes, Task_StartsWhenOperandsAreReadyAndACoreIsFree) {
  CoreTimes cores(1);
  cores.occupy(50, 10);
  EXPECT_EQ(cores.first_free_ns(), 60);
  cores.occupy(20, 10);
  EXPECT_EQ(cores.first_free_ns(), 70);
}

}  // namespace
}  // namespace weir::rt
