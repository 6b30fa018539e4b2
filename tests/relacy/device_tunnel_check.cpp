// Tunnels of devices: the text that CUDA compiles, in the order of memory that C++ promises. A
// group is a thread by itself; what a warp does together is one thread's work here.
#include <weir/device_tunnel.hpp>

#include <memory>

#include "base/threads.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

using device::Count;

/// HostMemory, with words that are checked.
struct CheckedMemory {
  using Word = sys::Atomic<Count>;
  static Count load(const Word& word) { return word.load(std::memory_order_acquire); }
  static void store(Word& word, Count value) { word.store(value, std::memory_order_release); }
  static bool exchange(Word& word, Count expected, Count desired) {
    return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                        std::memory_order_acquire);
  }
  static Count add(Word& word, Count value) {
    return word.fetch_add(value, std::memory_order_acq_rel);
  }
  static void pause() { sys::yield(); }
};

/// Plain data: a race on it is found.
struct Item {
  sys::Plain<int> number{0};
  Item& operator=(const Item& other) {
    number = static_cast<int>(other.number);
    return *this;
  }
};

template <Count kCapacity>
struct Held {
  using Tunnel = device::Tunnel<Item, CheckedMemory>;
  std::unique_ptr<CheckedMemory::Word[]> words{
      std::make_unique<CheckedMemory::Word[]>(Tunnel::words(kCapacity))};
  Item items[kCapacity];
  const Tunnel tunnel{words.get(), items, kCapacity};
  const device::Thread alone{};

  bool put(int number) {
    Item item;
    item.number = number;
    return tunnel.put(alone, item, true);
  }
  int get() {
    Item item;
    return tunnel.get(alone, item, true) ? static_cast<int>(item.number) : 0;
  }
};

/// Producers put 1, 2, ... each; consumers take until all are there.
template <int kProducers, int kConsumers, int kEach, Count kCapacity>
struct Passage : Check<Passage<kProducers, kConsumers, kEach, kCapacity>, kProducers + kConsumers> {
  Held<kCapacity> held;
  sys::Atomic<int> taken{0};
  int found[kProducers * kEach + 1] = {};

  void thread(unsigned index) {
    if (index < kProducers) {
      for (int i = 1; i <= kEach; ++i) {
        while (!held.put(static_cast<int>(index) * kEach + i)) sys::yield();
      }
      return;
    }
    while (taken.load(std::memory_order_relaxed) < kProducers * kEach) {
      const int number = held.get();
      if (number == 0) {
        sys::yield();
        continue;
      }
      ++found[number];
      taken.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void after() {
    for (int i = 1; i <= kProducers * kEach; ++i) CHECK_THAT(found[i] == 1);
  }
};

/// Items that put others until the end, which no thread sees early: what finds no room is worked
/// on.
template <int kDepth, Count kCapacity>
struct Recursion : Check<Recursion<kDepth, kCapacity>, 2> {
  Held<kCapacity> held;
  device::Tally<CheckedMemory> tallies[2];
  CheckedMemory::Word open{1};
  const device::Ends<CheckedMemory> ends{&open, tallies, 2};
  sys::Plain<int> worked[2] = {0, 0};

  void thread(unsigned index) {
    if (index == 0) {
      tallies[0].create(1);
      CHECK_THAT(held.put(kDepth));
      ends.close();
    }
    while (!ends.complete()) {
      const int depth = held.get();
      if (depth == 0) {
        sys::yield();
      } else {
        work(index, depth);
      }
    }
    // No race: all work happened before.
    CHECK_THAT(static_cast<int>(worked[0]) + static_cast<int>(worked[1]) == (1 << kDepth) - 1);
  }
  void work(unsigned index, int depth) {
    ++worked[index];
    if (depth > 1) {
      tallies[index].create(2);
      for (int child = 0; child < 2; ++child) {
        if (!held.put(depth - 1)) work(index, depth - 1);
      }
    }
    tallies[index].finish(1);
  }
};

}  // namespace

void check_device_tunnel(Run& run) {
  run.bounded<Passage<1, 1, 2, 1>>("a producer and a consumer, one place", 3);
  run.random<Passage<1, 1, 5, 2>>("a producer and a consumer, often");
  run.random<Passage<2, 1, 3, 2>>("two producers and a consumer");
  run.random<Passage<2, 2, 2, 2>>("two producers and two consumers", 2);
  run.random<Recursion<2, 1>>("items that put others");
  run.random<Recursion<3, 2>>("items that put others, which find no room", 2);
}

}  // namespace weir::rt::checker
