// Ring: every item comes out once, in order of each producer, and no consumer sees half of one.
#include "pipeline/ring.hpp"

#include "base/parking.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

struct Numbers {
  int* items;
};

/// Slots that are plain data: a race on one is found.
class Cells {
 public:
  explicit Cells(std::size_t slots) : items_(std::make_unique<sys::Plain<int>[]>(slots)) {}
  void write(std::size_t slot, const Numbers& from, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) items_[slot + i] = from.items[first + i];
  }
  void read(std::size_t slot, const Numbers& to, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to.items[first + i] = items_[slot + i];
  }

 private:
  std::unique_ptr<sys::Plain<int>[]> items_;
};

/// Producers put 1, 2, ... each; consumers take until all are there.
template <int kProducers, int kConsumers, int kEach, int kBatch, int kCapacity>
struct Traffic
    : Check<Traffic<kProducers, kConsumers, kEach, kBatch, kCapacity>, kProducers + kConsumers> {
  Ring<Cells> ring{kCapacity};
  sys::Atomic<int> taken{0};
  int found[kProducers][kEach + 1] = {};

  void thread(unsigned index) {
    if (index < kProducers) {
      put_all(static_cast<int>(index));
    } else {
      take_all();
    }
  }
  void put_all(int producer) {
    int items[kEach];
    for (int i = 0; i < kEach; ++i) items[i] = producer * 100 + i;
    for (int done = 0; done < kEach;) {
      const auto left = static_cast<std::size_t>(kEach - done);
      const std::size_t put = ring.push(Numbers{items + done}, std::min<std::size_t>(left, kBatch));
      if (put == 0) sys::yield();
      done += static_cast<int>(put);
    }
  }
  void take_all() {
    int last[kProducers];
    for (int& each : last) each = -1;
    while (taken.load(std::memory_order_relaxed) < kProducers * kEach) {
      int items[kBatch];
      const std::size_t count = ring.pop(Numbers{items}, kBatch);
      if (count == 0) sys::yield();
      for (std::size_t i = 0; i < count; ++i) {
        const int producer = items[i] / 100, number = items[i] % 100;
        CHECK_THAT(number > last[producer]);
        last[producer] = number;
        ++found[producer][number];
      }
      taken.fetch_add(static_cast<int>(count), std::memory_order_relaxed);
    }
  }
  void after() {
    for (const auto& producer : found) {
      for (int i = 0; i < kEach; ++i) CHECK_THAT(producer[i] == 1);
    }
    CHECK_THAT(!ring.ready() && ring.has_room());
  }
};

/// A consumer that sleeps when it finds nothing: no batch goes unnoticed.
struct Sleeper : Check<Sleeper, 3> {
  Ring<Cells> ring{4};
  Parking parking;

  void thread(unsigned index) {
    int items[2] = {1, 2};
    if (index < 2) {
      CHECK_THAT(ring.push(Numbers{items}, 2) == 2);
      parking.unpark_one();
      return;
    }
    for (std::size_t taken = 0; taken < 4;) {
      parking.prepare();
      if (ring.ready()) {
        parking.cancel();
        taken += ring.pop(Numbers{items}, 2);
      } else {
        parking.park();
      }
    }
  }
};

}  // namespace

void check_ring(Run& run) {
  run.bounded<Traffic<1, 1, 2, 1, 1>>("a producer and a consumer, one slot", 3);
  run.bounded<Traffic<1, 1, 3, 2, 2>>("a producer and a consumer, in batches", 3);
  run.random<Traffic<1, 1, 6, 2, 2>>("a producer and a consumer, often");
  run.random<Traffic<2, 1, 3, 2, 2>>("two producers and a consumer");
  run.random<Traffic<1, 2, 4, 2, 3>>("a producer and two consumers");
  run.random<Traffic<2, 2, 2, 2, 2>>("two producers and two consumers");
  run.random<Sleeper>("a consumer that sleeps");
}

}  // namespace weir::rt::checker
