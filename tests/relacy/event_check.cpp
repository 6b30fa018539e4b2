// EventState notifies each waiter of an action exactly once, and no waiter of another action.
#include "core/event.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// What a thread that waits reads when it is notified.
struct Told : Waiter {
  sys::Atomic<std::uint32_t> times{0};
  sys::Plain<int> effect = 0;
};

/// An action that is completed, and threads that ask for news of it: each gets it, or finds the
/// action over; in both cases it sees what the action did.
template <int kWaiting>
struct Complete : Check<Complete<kWaiting>, kWaiting + 1> {
  EventState state;
  sys::Plain<Waiter*> waiters = nullptr;
  sys::Plain<int> effect = 0;
  Told told[kWaiting];

  void before() { state.open(7); }
  void thread(unsigned index) {
    if (index == kWaiting) {
      effect = 1;
      Waiter* list = state.close(7, waiters);
      while (list != nullptr) {
        auto& waiter = static_cast<Told&>(*list);
        list = list->next;
        waiter.effect = 1;
        waiter.times.fetch_add(1, std::memory_order_release);
      }
      return;
    }
    if (!state.watch(7, waiters, told[index])) {
      CHECK_THAT(effect == 1);
      return;
    }
    while (told[index].times.load(std::memory_order_acquire) == 0) sys::yield();
    CHECK_THAT(told[index].effect == 1);
  }
  void after() {
    for (Told& each : told) CHECK_THAT(each.times.load(std::memory_order_relaxed) <= 1);
    CHECK_THAT(waiters == nullptr);
  }
};

/// Two threads that take their waiters back while the action is completed.
struct TakeBack : Check<TakeBack, 3> {
  EventState state;
  sys::Plain<Waiter*> waiters = nullptr;
  Told told[2];

  void before() { state.open(7); }
  void thread(unsigned index) {
    if (index == 2) {
      Waiter* list = state.close(7, waiters);
      while (list != nullptr) {
        auto& waiter = static_cast<Told&>(*list);
        list = list->next;
        waiter.times.fetch_add(1, std::memory_order_release);
      }
      return;
    }
    if (!state.watch(7, waiters, told[index])) return;
    const bool mine = state.unwatch(7, waiters, told[index]);
    if (!mine) {
      while (told[index].times.load(std::memory_order_acquire) == 0) sys::yield();
    }
    told[index].effect = 1;  // no other thread touches it any more
    told[index].next = nullptr;
    CHECK_THAT(told[index].times.load(std::memory_order_relaxed) == (mine ? 0 : 1));
  }
};

/// A slot that is used again by another thread while one asks for its first action, and one for the
/// second.
struct Stale : Check<Stale, 4> {
  EventState state;
  sys::Plain<Waiter*> waiters = nullptr;
  sys::Plain<int> effect = 0;
  sys::Atomic<bool> closed{false}, second{false};
  Told told[2];

  void before() { state.open(7); }
  void close(std::uint64_t id) {
    Waiter* list = state.close(id, waiters);
    while (list != nullptr) {
      auto& waiter = static_cast<Told&>(*list);
      list = list->next;
      waiter.effect = static_cast<int>(id);
      waiter.times.fetch_add(1, std::memory_order_release);
    }
  }
  void thread(unsigned index) {
    if (index == 2) {
      effect = 1;
      close(7);
      closed.store(true, std::memory_order_release);
      return;
    }
    if (index == 3) {
      while (!closed.load(std::memory_order_acquire)) sys::yield();
      state.open(8);
      second.store(true, std::memory_order_release);
      close(8);
      return;
    }
    const std::uint64_t id = 7 + index;
    if (index == 1) {
      while (!second.load(std::memory_order_acquire)) sys::yield();
    }
    if (!state.watch(id, waiters, told[index])) {
      CHECK_THAT(effect == 1);
      return;
    }
    while (told[index].times.load(std::memory_order_acquire) == 0) sys::yield();
    CHECK_THAT(told[index].effect == static_cast<int>(id));
  }
  void after() { CHECK_THAT(waiters == nullptr); }
};

}  // namespace

void check_event(Run& run) {
  run.full<Complete<1>>("one waits");
  run.random<Complete<2>>("two wait");
  run.random<Complete<3>>("three wait");
  run.random<TakeBack>("two take back");
  run.random<Stale>("a slot is used again");
}

}  // namespace weir::rt::checker
