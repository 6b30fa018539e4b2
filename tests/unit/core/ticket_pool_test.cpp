// Tickets that queues take and give back.
#include "core/ticket_pool.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace weir::rt {
namespace {

/// Returns the highest slot number in a list, without the mark.
std::uint32_t highest_slot(const Ticket* list) {
  std::uint32_t highest = 0;
  for (; list != nullptr; list = list->next) {
    highest = std::max(highest, list->slot & ~Ticket::kMark);
  }
  return highest;
}

// The first of two queues must not get all free tickets: the pool would grow for the second.
TEST(TicketPool, TwoHoldersComeAndGo_ThePoolDoesNotGrow) {
  TicketPool pool;
  Ticket* first = pool.take();
  Ticket* second = pool.take();
  const std::uint32_t highest = std::max(highest_slot(first), highest_slot(second));
  for (int round = 0; round < 100; ++round) {
    pool.give(first);
    pool.give(second);
    first = pool.take();
    second = pool.take();
    ASSERT_LE(std::max(highest_slot(first), highest_slot(second)), highest) << "round " << round;
  }
}

TEST(TicketPool, HolderGivesMoreThanAChunk_EachTicketIsTakenOnce) {
  TicketPool pool;
  Ticket* all = nullptr;
  for (int i = 0; i < 3; ++i) {
    Ticket* const chunk = pool.take();
    Ticket* last = chunk;
    while (last->next != nullptr) last = last->next;
    last->next = all;
    all = chunk;
  }
  const std::uint32_t highest = highest_slot(all);
  pool.give(all);
  std::vector<bool> taken(highest + 1);
  for (int i = 0; i < 3; ++i) {
    for (const Ticket* ticket = pool.take(); ticket != nullptr; ticket = ticket->next) {
      const std::uint32_t slot = ticket->slot & ~Ticket::kMark;
      ASSERT_LE(slot, highest);
      EXPECT_FALSE(taken[slot]);
      taken[slot] = true;
    }
  }
  EXPECT_EQ(std::count(taken.begin(), taken.end(), true), std::ptrdiff_t{highest} + 1);
}

}  // namespace
}  // namespace weir::rt
