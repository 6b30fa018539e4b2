#include "core/action.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(Action, KeepsToSixLines) {
  EXPECT_LE(sizeof(Action), 6u * 64) << "every line more costs each action";
}

}  // namespace
}  // namespace weir::rt
