// ActionPool and ActionCache hand each slot to one user at a time.
#include "core/action_pool.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Threads that take batches and give them back; events name slots by index meanwhile.
template <int kThreads>
struct Batches : Check<Batches<kThreads>, kThreads> {
  ActionPool pool;

  void thread(unsigned) {
    for (int i = 0; i < 2; ++i) {
      Action* const batch = pool.take();
      for (Action* slot = batch; slot != nullptr; slot = slot->next) {
        CHECK_THAT(pool.at(slot->slot) == slot);
        slot->waiters = nullptr;
      }
      pool.give(batch);
      if (Action* const other = pool.at(3)) CHECK_THAT(other->slot == 3);
    }
  }
};

/// A producer that takes slots and an owner that gives them back, round the ring and past it.
template <int kSlots, int kFlushEach>
struct Round : Check<Round<kSlots, kFlushEach>, 2> {
  ActionPool pool;
  ActionCache cache{pool, reinterpret_cast<Executor*>(this)};
  sys::Plain<Action*> sent[kSlots];
  sys::Atomic<int> count{0};

  void thread(unsigned index) {
    if (index == 0) {
      bool untaken = false;
      for (int i = 0; i < kSlots; ++i) {
        Action& slot = cache.take();
        if (i == 1 && !untaken) {
          cache.undo_take(slot);
          --i;
          untaken = true;
          continue;
        }
        CHECK_THAT(slot.stream == reinterpret_cast<Executor*>(this));
        slot.waiters = nullptr;
        sent[i] = &slot;
        count.store(i + 1, std::memory_order_release);
      }
      return;
    }
    for (int i = 0; i < kSlots; ++i) {
      while (count.load(std::memory_order_acquire) <= i) sys::yield();
      Action& slot = *sent[i];
      slot.waiters = nullptr;
      cache.give(slot);
      if (i % kFlushEach == 0) cache.flush();
    }
    cache.flush();
  }
};

/// The owner changes from thread to thread.
struct Owners : Check<Owners, 3> {
  ActionPool pool;
  ActionCache cache{pool, reinterpret_cast<Executor*>(this)};
  SpinLock owner;
  sys::Atomic<Action*> sent{nullptr};
  sys::Plain<int> given = 0;

  void thread(unsigned index) {
    constexpr int kSlots = 8;
    if (index == 0) {
      for (int i = 0; i < kSlots; ++i) {
        Action& slot = cache.take();
        slot.waiters = nullptr;
        while (sent.load(std::memory_order_acquire) != nullptr) sys::yield();
        sent.store(&slot, std::memory_order_release);
      }
      return;
    }
    for (bool done = false; !done;) {
      {
        const SpinGuard guard(owner);
        if (Action* const slot = sent.exchange(nullptr, std::memory_order_acq_rel)) {
          slot->waiters = nullptr;
          ++given;
          cache.give(*slot);
          if (given % 3 == 0) cache.flush();
        }
        done = given == kSlots;
        if (done) cache.flush();
      }
      sys::yield();
    }
  }
};

}  // namespace

void check_action_pool(Run& run) {
  run.random<Batches<2>>("two threads take batches");
  run.random<Batches<3>>("three threads take batches");
  run.bounded<Round<4, 1>>("a ring", 2);
  run.random<Round<12, 1>>("round the ring");
  run.random<Round<16, 3>>("past the ring");
  run.random<Owners>("two owners in turns");
}

}  // namespace weir::rt::checker
