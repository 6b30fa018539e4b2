// What the log of failures keeps.
#include <gtest/gtest.h>

#include "core/failure_log.hpp"

namespace weir::rt {
namespace {

TEST(FailureLog, RemovedEntries_DoNotCountTowardsTheLimit) {
  FailureLog log;
  Action action;
  const auto add = [&](std::uint64_t id) {
    action.event.open(id);
    action.status = WEIR_STATUS_KERNEL_ERROR;
    EXPECT_FALSE(log.add(action));
  };
  add(1);
  for (std::uint64_t id = 2; id <= 1'000'002; ++id) {
    add(id);
    log.remove(id);
  }
  EXPECT_EQ(log.find(1).status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(log.find(2).status, WEIR_STATUS_OK);
}

TEST(FailureLog, MoreThanAMillionEntries_DropTheOldest) {
  FailureLog log;
  Action action;
  action.status = WEIR_STATUS_KERNEL_ERROR;
  for (std::uint64_t id = 1; id <= 1'000'001; ++id) {
    action.event.open(id);
    EXPECT_FALSE(log.add(action));
  }
  EXPECT_EQ(log.find(1).status, WEIR_STATUS_OK);
  EXPECT_EQ(log.find(2).status, WEIR_STATUS_KERNEL_ERROR);
}

}  // namespace
}  // namespace weir::rt
