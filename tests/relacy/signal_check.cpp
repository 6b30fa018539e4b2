// Signal: the thread that waits is woken, sees what was delivered, and may end then.
#include "base/signal.hpp"

#include "base/plain.hpp"
#include "parts.hpp"
#include "stream/host_waiter.hpp"

namespace weir::rt::checker {
namespace {

/// Deliveries to one thread that sleeps until it has them all.
template <int kDelivering, bool kTimed>
struct Deliver : Check<Deliver<kDelivering, kTimed>, kDelivering + 1> {
  // A wake-up may come when the thread has left already: it names an address and reads nothing.
  Signal signal;
  sys::Plain<int> delivered[kDelivering];

  void thread(unsigned index) {
    if (index < kDelivering) {
      delivered[index] = 1;
      signal.deliver();
      return;
    }
    const std::int64_t deadline = kTimed ? sys::now_ns() + 10'000 : sys::kNever;
    signal.sleep(kDelivering, deadline);
    if (kTimed) {
      // Late deliveries: those that were not taken back must be waited for.
      while (signal.count() < kDelivering) sys::yield();
    }
    CHECK_THAT(signal.count() == kDelivering);
    for (auto& each : delivered) each = 2;
  }
};

/// A thread that sleeps again for more.
struct Twice : Check<Twice, 3> {
  Signal signal;
  sys::Plain<int> delivered[2];

  void thread(unsigned index) {
    if (index < 2) {
      delivered[index] = 1;
      signal.deliver();
      return;
    }
    signal.sleep(1, sys::kNever);
    signal.sleep(2, sys::kNever);
    for (auto& each : delivered) each = 2;
  }
};

/// A thread that waits for any of two actions, or until a deadline, and then leaves: it takes back
/// its waiters, or waits for those that are being notified (WaitList of stream/waiting.cpp).
template <bool kTimed>
struct Leave : Check<Leave<kTimed>, 3> {
  EventState states[2];
  sys::Plain<Waiter*> lists[2] = {nullptr, nullptr};
  Signal signal;
  sys::Plain<int> life = 0;  ///< of the waiters: each thread that notifies one reads it

  void before() {
    for (EventState& state : states) state.open(7);
  }
  void thread(unsigned index) {
    if (index < 2) {
      Waiter* const waiter = states[index].close(7, lists[index]);
      if (waiter == nullptr) return;
      CHECK_THAT(life == 1);
      waiter->deliver(*waiter, WEIR_STATUS_KERNEL_ERROR, {});
      return;
    }
    life = 1;
    {
      HostWaiter waiters[2];
      std::uint32_t watched = 0;
      for (int i = 0; i < 2; ++i) {
        waiters[i].signal = &signal;
        waiters[i].deliver = HostWaiter::on_deliver;
        waiters[i].watching = states[i].watch(7, lists[i], waiters[i]);
        if (waiters[i].watching) ++watched;
      }
      if (watched > 0) signal.sleep(1, kTimed ? sys::now_ns() + 1000 : sys::kNever);
      for (HostWaiter& waiter : waiters) {
        if (waiter.done.load(std::memory_order_acquire)) {
          CHECK_THAT(waiter.status == WEIR_STATUS_KERNEL_ERROR);
        }
      }
      std::uint32_t late = 0;
      for (int i = 0; i < 2; ++i) {
        if (waiters[i].watching && !states[i].unwatch(7, lists[i], waiters[i])) ++late;
      }
      while (signal.count() < late) sys::yield();
    }
    life = 2;
  }
};

}  // namespace

void check_signal(Run& run) {
  run.full<Deliver<1, false>>("one delivers");
  run.random<Deliver<2, false>>("two deliver");
  run.random<Deliver<3, false>>("three deliver");
  run.random<Deliver<2, true>>("two deliver late");
  run.random<Twice>("sleeps twice");
  run.random<Leave<false>>("waits for any of two and leaves");
  run.random<Leave<true>>("waits until a deadline and leaves");
}

}  // namespace weir::rt::checker
