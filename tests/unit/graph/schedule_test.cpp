// Lists of calls for cores: whether they keep the dependences of random programs.
#include "graph/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/kernel.hpp"
#include "graph_programs.hpp"

namespace weir::rt {
namespace {

using Positions = std::vector<std::uint32_t>;

/// Which calls conflict, by looking at all pairs.
bool conflict(const CallList& list, std::size_t earlier, std::size_t later) {
  for (const CallList::Use& a : list.uses_of(list.calls()[earlier])) {
    for (const CallList::Use& b : list.uses_of(list.calls()[later])) {
      const CallList::Piece &one = list.pieces()[a.piece], &other = list.pieces()[b.piece];
      const bool touch = one.buffer == other.buffer && overlap(one.region, other.region);
      if (touch && (a.writes() || b.writes())) return true;
    }
  }
  return false;
}

/// Lets a random seat go on that can, until all are at their ends. Returns the calls in the order
/// in which they ran.
std::vector<std::uint32_t> run_in_some_order(const Schedule& schedule, std::mt19937& random) {
  std::vector<std::uint32_t> order;
  Positions done(schedule.seats());
  for (const Schedule::Phase& phase : schedule.phases()) {
    if (phase.parallel) {
      order.push_back(phase.call);
      continue;
    }
    Positions published = done;
    for (;;) {
      std::vector<std::size_t> able;
      std::size_t left = 0;
      for (std::size_t seat = 0; seat < schedule.seats(); ++seat) {
        const auto steps = schedule.steps_of(phase, seat);
        const std::size_t at = done[seat] - phase.first[seat];
        if (at == steps.size()) continue;
        ++left;
        const auto waits = schedule.waits_of(steps[at]);
        const auto over = [&](const auto& wait) { return published[wait.seat] >= wait.position; };
        if (std::ranges::all_of(waits, over)) able.push_back(seat);
      }
      if (left == 0) break;
      if (able.empty()) return {};
      const std::size_t seat = able[random() % able.size()];
      const Schedule::Step& step = schedule.steps_of(phase, seat)[done[seat] - phase.first[seat]];
      order.push_back(step.call);
      ++done[seat];
      if (step.awaited) published[seat] = done[seat];
    }
  }
  return order;
}

/// Checks that an order has each call once, and that conflicting calls are in program order.
void check_order(const CallList& list, const std::vector<std::uint32_t>& order) {
  ASSERT_EQ(order.size(), list.calls().size()) << "no seat could go on";
  std::vector<std::size_t> at(order.size(), SIZE_MAX);
  for (std::size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
  for (std::size_t later = 0; later < at.size(); ++later) {
    ASSERT_NE(at[later], SIZE_MAX);
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (!conflict(list, earlier, later)) continue;
      ASSERT_LT(at[earlier], at[later]) << "calls " << earlier << " and " << later;
    }
  }
}

TEST(Schedules, KeepTheDependencesOfRandomPrograms) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    RandomCalls program(random);
    const CallList& list = program.list();
    const Dependences dependences(list);
    for (const std::size_t seats : {1u, 2u, 3u, 8u}) {
      const Schedule schedule(list, dependences, seats);
      for (int trial = 0; trial < 3; ++trial) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", seats " + std::to_string(seats));
        check_order(list, run_in_some_order(schedule, random));
      }
    }
  }
}

/// All that a call depends on, directly or through others.
std::vector<std::vector<bool>> closure(const CallList& list, const Dependences& dependences) {
  const std::size_t count = list.calls().size();
  std::vector<std::vector<bool>> all(count, std::vector<bool>(count));
  for (std::size_t call = 0; call < count; ++call) {
    for (const std::uint32_t earlier : dependences.of(call)) {
      all[call][earlier] = true;
      for (std::size_t i = 0; i < count; ++i) all[call][i] = all[call][i] || all[earlier][i];
    }
  }
  return all;
}

TEST(Dependences, ConflictingCalls_AreOrderedDirectlyOrTransitively) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    RandomCalls program(random);
    const CallList& list = program.list();
    const auto all = closure(list, Dependences(list));
    for (std::size_t later = 0; later < all.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        if (!conflict(list, earlier, later)) continue;
        ASSERT_TRUE(all[later][earlier]) << earlier << " before " << later << ", seed " << seed;
      }
    }
  }
}

TEST(Schedules, RedundantWaits_AreOmitted) {
  // Two rows of points; each step of a point reads both points of the step before.
  ListedCalls program;
  for (int step = 0; step < 100; ++step) {
    const int from = step % 2, to = 1 - from;
    for (int point = 0; point < 2; ++point) {
      program.add({{from, 0, 8, WEIR_ACCESS_READ},
                   {from, 8, 8, WEIR_ACCESS_READ},
                   {to, std::uint64_t(8 * point), 8, WEIR_ACCESS_WRITE}});
    }
  }
  const Dependences dependences(program.list());
  EXPECT_GT(dependences.count(), 5u * 99) << "several of each call";
  const Schedule schedule(program.list(), dependences, 2);
  EXPECT_EQ(schedule.wait_count(), 2u * 99) << "one a step and seat";
}

TEST(Schedules, SerialChain_NeedsNoWaits) {
  ListedCalls program;
  for (int i = 0; i < 100; ++i) program.add({{0, 0, 8, WEIR_ACCESS_READ_WRITE}});
  EXPECT_EQ(Schedule(program.list(), Dependences(program.list()), 4).wait_count(), 0u);
}

TEST(Schedules, IndependentChains_AreSpreadEvenlyWithoutWaits) {
  ListedCalls program;
  for (int i = 0; i < 100; ++i) {
    for (std::uint64_t chain = 0; chain < 4; ++chain)
      program.add({{0, 8 * chain, 8, WEIR_ACCESS_READ_WRITE}});
  }
  const Schedule schedule(program.list(), Dependences(program.list()), 2);
  EXPECT_EQ(schedule.wait_count(), 0u);
  const Schedule::Phase& phase = schedule.phases().front();
  EXPECT_EQ(schedule.steps_of(phase, 0).size(), 200u);
  EXPECT_EQ(schedule.steps_of(phase, 1).size(), 200u);
}

TEST(Schedules, ParallelCall_IsAPhaseOfItsOwn) {
  ListedCalls program;
  program.add({{0, 0, 8, WEIR_ACCESS_WRITE}});
  program.add({{0, 0, 16, WEIR_ACCESS_READ_WRITE}}, true);
  program.add({{0, 8, 8, WEIR_ACCESS_READ}});
  const Schedule schedule(program.list(), Dependences(program.list()), 2);
  ASSERT_EQ(schedule.phases().size(), 3u);
  EXPECT_TRUE(schedule.phases()[1].parallel);
  EXPECT_EQ(schedule.phases()[1].call, 1u);
  EXPECT_EQ(schedule.wait_count(), 0u);
}

}  // namespace
}  // namespace weir::rt
