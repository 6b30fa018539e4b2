#include "core/action.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(Action, FitsFourCacheLinesAndTicket48Bytes) {
  EXPECT_LE(sizeof(Action), 4u * 64) << "every line more costs each action";
  EXPECT_LE(sizeof(Ticket), 48u) << "many tasks may be in flight";
}

/// Arguments of each number, which are inline, or partly or all elsewhere, in a slot used again.
TEST(Action, ArgumentsOfAnyNumber_KeepTheirValues) {
  Action action;
  for (const std::size_t operands : {0u, 1u, 3u, 4u, 20u, 2u}) {
    for (const std::size_t scalars : {0u, 1u, 2u, 4u, 30u}) {
      for (const std::size_t events : {0u, 1u, 5u}) {
        action.reserve(operands, scalars, events);
        std::uint64_t value = 0;
        for (Operand& operand : action.operands()) operand = {Region{.offset = ++value, .row = 1}};
        for (weir_scalar& scalar : action.scalars()) scalar = weir_scalar_u64(++value);
        for (EventWait& wait : action.events()) wait.submission_id = ++value;
        value = 0;
        EXPECT_EQ(action.operands().size(), operands);
        EXPECT_EQ(action.scalars().size(), scalars);
        EXPECT_EQ(action.events().size(), events);
        for (const Operand& operand : action.operands()) EXPECT_EQ(operand.offset, ++value);
        for (const weir_scalar& scalar : action.scalars()) EXPECT_EQ(scalar.value.u64, ++value);
        for (const EventWait& wait : action.events()) EXPECT_EQ(wait.submission_id, ++value);
        action.recycle();
      }
    }
  }
}

}  // namespace
}  // namespace weir::rt
