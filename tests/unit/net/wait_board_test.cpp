#include "net/wait_board.hpp"

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

TEST(WaitBoard, ListsEachWaitOnce) {
  WaitBoard board;
  EXPECT_EQ(board.state().waits, "");
  EXPECT_EQ(board.state().since_ns, 0);
  WaitBoard::Entry first(board, "a barrier"), second(board, "a message"), third(board, "a message");
  first.enter();
  first.enter();
  second.enter();
  third.enter();
  EXPECT_EQ(board.state().waits, "a barrier and a message");
  EXPECT_GT(board.state().since_ns, 0);
}

TEST(WaitBoard, IdleWaitIsListed_AndIsNoStandstill) {
  WaitBoard board;
  WaitBoard::Entry entry(board, {"orders", true});
  entry.enter();
  EXPECT_EQ(board.state().waits, "orders");
  EXPECT_EQ(board.state().since_ns, 0);
}

TEST(WaitBoard, WaitsThatAreGivenUpAreOneUntilOneEnds) {
  WaitBoard board(sys::kNever);  // however long a pause is
  const auto wait = [&board](bool ends) {
    WaitBoard::Entry entry(board, "a message");
    entry.enter();
    if (ends) entry.end();
    return board.state();
  };
  const WaitBoard::State first = wait(false);
  EXPECT_EQ(board.state().since_ns, first.since_ns);
  EXPECT_EQ(board.state().waits, "a message");
  while (sys::now_ns() == first.since_ns) sys::yield();
  const WaitBoard::State second = wait(false);
  EXPECT_EQ(second.since_ns, first.since_ns);
  EXPECT_EQ(second.movement, first.movement);
  EXPECT_EQ(wait(true).since_ns, first.since_ns);
  EXPECT_EQ(board.state().since_ns, 0);
  EXPECT_EQ(board.state().waits, "");
  const WaitBoard::State last = wait(false);
  EXPECT_GT(last.since_ns, first.since_ns);
  EXPECT_NE(last.movement, first.movement);
}

TEST(WaitBoard, EntryThatNeverEnteredLeavesNothing) {
  WaitBoard board;
  const WaitBoard::State before = board.state();
  {
    WaitBoard::Entry entry(board, "a barrier");
    entry.end();
  }
  EXPECT_EQ(board.state().movement, before.movement);
  board.note_message();
  EXPECT_NE(board.state().movement, before.movement);
}

}  // namespace
}  // namespace weir::rt
