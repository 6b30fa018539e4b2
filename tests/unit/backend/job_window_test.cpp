#include "backend/job_window.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {
namespace {

struct Slot {
  Job job;
};
using Window = JobWindow<Slot, 4>;

void add(Window& window, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    window.free_slot().job.id = window.next();
    window.add();
  }
}

TEST(JobWindow, IsFullUntilItsOldestJobIsRemoved) {
  Window window;
  add(window, 4);
  EXPECT_TRUE(window.full());
  window.remove(*window.find(2));
  window.remove(*window.find(3));
  EXPECT_TRUE(window.full());
  EXPECT_EQ(window.first(), 1u);
  window.remove(*window.find(1));
  EXPECT_FALSE(window.full());
  EXPECT_EQ(window.first(), 4u);
}

TEST(JobWindow, FindsOnlyJobsInFlight) {
  Window window;
  add(window, 3);
  window.remove(*window.find(1));
  add(window, 2);  // 5 has the slot of 1
  EXPECT_EQ(window.find(1), nullptr);
  EXPECT_EQ(window.find(5), &window.slot_of(1));
  EXPECT_EQ(window.find(6), nullptr);
}

TEST(JobWindow, VisitsJobsInFlightFromTheOldestOn) {
  Window window;
  add(window, 4);
  window.remove(*window.find(2));
  std::vector<std::uint64_t> visited;
  window.for_each([&](Slot& slot) {
    visited.push_back(slot.job.id);
    window.remove(slot);
  });
  EXPECT_EQ(visited, (std::vector<std::uint64_t>{1, 3, 4}));
  EXPECT_EQ(window.first(), window.next());
}

}  // namespace
}  // namespace weir::rt
