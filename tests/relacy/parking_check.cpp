// Parking loses no wake-up and no token.
#include "base/parking.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Threads that wait for tickets, as workers for streams, and threads that bring them. Each ticket
/// is brought and waited for once: a lost wake-up is a deadlock.
template <int kWaiting, int kBringing>
struct Tickets : Check<Tickets<kWaiting, kBringing>, kWaiting + kBringing> {
  Parking parking;
  sys::Atomic<std::uint32_t> tickets{0};

  bool take() {
    std::uint32_t count = tickets.load(std::memory_order_seq_cst);
    while (count > 0) {
      if (tickets.compare_exchange_strong(count, count - 1)) return true;
    }
    return false;
  }
  void wait_for_one() {
    while (!take()) {
      parking.prepare();
      if (tickets.load(std::memory_order_seq_cst) > 0) {
        parking.cancel();
      } else {
        parking.park();
      }
    }
  }
  void produce_one() {
    std::uint32_t count = tickets.load(std::memory_order_relaxed);
    while (!tickets.compare_exchange_strong(count, count + 1)) {
    }
    parking.unpark_one();
  }

  void thread(unsigned index) {
    if (index < kWaiting) {
      for (int i = 0; i < kBringing; ++i) wait_for_one();
    } else {
      for (int i = 0; i < kWaiting; ++i) produce_one();
    }
  }
};

/// The end of a place: all threads must see the flag.
struct Stop : Check<Stop, 3> {
  Parking parking;
  sys::Atomic<bool> stopping{false};

  void thread(unsigned index) {
    if (index == 0) {
      stopping.store(true, std::memory_order_seq_cst);
      parking.unpark_all();
      return;
    }
    while (!stopping.load(std::memory_order_relaxed)) {
      parking.prepare();
      if (stopping.load(std::memory_order_seq_cst)) {
        parking.cancel();
      } else {
        parking.park();
      }
    }
  }
};

/// A wake-up that comes while the sleeper changes its mind: nothing of it is left for the next
/// time.
struct Cancel : Check<Cancel, 2> {
  Parking parking;
  sys::Atomic<bool> tried{false};
  sys::Atomic<bool> cancelled{false};
  sys::Plain<bool> woken = false;

  void thread(unsigned index) {
    if (index == 0) {
      parking.prepare();
      parking.cancel();
      cancelled.store(true, std::memory_order_relaxed);
      while (!tried.load(std::memory_order_relaxed)) sys::yield();
      parking.prepare();
      parking.park();
      CHECK_THAT(woken);
      return;
    }
    parking.unpark_one();
    tried.store(true, std::memory_order_relaxed);
    while (!cancelled.load(std::memory_order_relaxed)) sys::yield();
    woken = true;
    while (!parking.unpark_one()) sys::yield();
  }
};

}  // namespace

void check_parking(Run& run) {
  run.bounded<Tickets<1, 1>>("one waits for one", 4);
  run.random<Tickets<1, 2>>("one waits for two");
  run.random<Tickets<2, 1>>("two wait for one");
  run.random<Tickets<2, 2>>("two wait for two");
  run.random<Stop>("two are stopped");
  run.random<Cancel>("a sleeper that changes its mind");
}

}  // namespace weir::rt::checker
