#include "tasks/core_times.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(CoreTimes, CoresThatBeganTogetherAreFreeTogether) {
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

TEST(CoreTimes, ATaskBeginsWhenItsOperandsAreThere) {
  CoreTimes cores(1);
  cores.occupy(50, 10);
  EXPECT_EQ(cores.first_free_ns(), 60);
  cores.occupy(20, 10);
  EXPECT_EQ(cores.first_free_ns(), 70);
}

}  // namespace
}  // namespace weir::rt
