#include "core/action.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(Action, FitsFiveCacheLinesAndTicket48Bytes) {
  EXPECT_LE(sizeof(Action), 5u * 64) << "every line more costs each action";
  EXPECT_LE(sizeof(Ticket), 48u) << "many tasks may be in flight";
}

}  // namespace
}  // namespace weir::rt
