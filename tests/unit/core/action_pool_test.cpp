#include "core/action_pool.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace weir::rt {
namespace {

TEST(ActionPool, FindsSlotsByIndex) {
  ActionPool pool;
  Action* const batch = pool.take();
  EXPECT_EQ(pool.at(batch->slot), batch);
  EXPECT_EQ(pool.at(std::uint64_t{1} << 60), nullptr);
  EXPECT_EQ(pool.at(~std::uint64_t{0}), nullptr);
  pool.give(batch);
}

TEST(ActionPool, ManyShortLivedStreams_DoNotGrowThePool) {
  ActionPool pool;
  std::set<Action*> seen;
  for (int stream = 0; stream < 1000; ++stream) {
    ActionCache first(pool, nullptr), second(pool, nullptr);
    for (int i = 0; i < 100; ++i) {
      for (ActionCache* cache : {&first, &second}) {
        Action& action = cache->take();
        seen.insert(&action);
        cache->give(action);
      }
    }
  }
  EXPECT_LE(seen.size(), 4096u);
}

TEST(ActionCache, UndoneTake_ReturnsTheSlotToTheNextTake) {
  ActionPool pool;
  ActionCache cache(pool, nullptr);
  Action& action = cache.take();
  cache.undo_take(action);
  EXPECT_EQ(&cache.take(), &action);
}

TEST(ActionCache, ConcurrentTakeAndGive_NeverHandsOutASlotTwice) {
  ActionPool pool;
  int word = 0;
  auto* const stream = reinterpret_cast<Executor*>(&word);  // not used
  ActionCache cache(pool, stream);
  constexpr int kActions = 200'000;
  std::vector<std::atomic<Action*>> handover(64);
  std::thread owner([&] {
    for (int i = 0; i < kActions; ++i) {
      Action* action = nullptr;
      while ((action = handover[static_cast<std::size_t>(i) % 64].exchange(nullptr)) == nullptr) {
        cache.flush();
        std::this_thread::yield();
      }
      EXPECT_EQ(action->operand_count, 1);
      action->operand_count = 0;
      cache.give(*action);
    }
  });
  for (int i = 0; i < kActions; ++i) {
    Action& action = cache.take();
    ASSERT_EQ(action.operand_count, 0) << "taken twice";
    ASSERT_EQ(action.stream, stream);
    action.operand_count = 1;
    auto& place = handover[static_cast<std::size_t>(i) % 64];
    while (place.load() != nullptr) std::this_thread::yield();
    place.store(&action);
  }
  owner.join();
}

}  // namespace
}  // namespace weir::rt
