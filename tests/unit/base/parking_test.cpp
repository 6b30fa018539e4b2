#include "base/parking.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weir::rt {
namespace {

// Producers hand out tickets, consumers sleep when there are none: a lost wake-up hangs this test.
TEST(Parking, ConcurrentProducersAndConsumers_LoseNoWakeUp) {
  constexpr int kTickets = 20'000;
  constexpr int kProducers = 2, kConsumers = 2;
  Parking parking;
  std::atomic<int> tickets{0}, taken{0};
  const auto take = [&] {
    int count = tickets.load(std::memory_order_seq_cst);
    while (count > 0) {
      if (tickets.compare_exchange_weak(count, count - 1)) return true;
    }
    return false;
  };
  std::vector<std::thread> threads;
  for (int c = 0; c < kConsumers; ++c) {
    threads.emplace_back([&] {
      while (taken.load() < kProducers * kTickets) {
        if (take()) {
          if (taken.fetch_add(1) + 1 == kProducers * kTickets) parking.unpark_all();
          continue;
        }
        parking.prepare();
        if (tickets.load(std::memory_order_seq_cst) > 0 || taken.load() == kProducers * kTickets) {
          parking.cancel();
        } else {
          parking.park();
        }
      }
      parking.unpark_all();
    });
  }
  for (int p = 0; p < kProducers; ++p) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTickets; ++i) {
        tickets.fetch_add(1, std::memory_order_seq_cst);
        parking.unpark_one();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), kProducers * kTickets);
}

TEST(Parking, UnparkOne_ReturnsWhetherAThreadWasParked) {
  Parking parking;
  EXPECT_FALSE(parking.unpark_one());
  parking.prepare();
  EXPECT_TRUE(parking.unpark_one());
  parking.park();
  EXPECT_FALSE(parking.unpark_one());
}

}  // namespace
}  // namespace weir::rt
