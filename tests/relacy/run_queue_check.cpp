// RunQueue with Parking: no stream waits while its worker sleeps, and the queue may end.
#include "stream/run_queue.hpp"

#include "base/parking.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

struct Item {
  sys::Plain<Item*> next_in_queue = nullptr;
  sys::Plain<int> value = 0;
  std::size_t at = 0;
  std::size_t priority() const { return at; }
};

/// Threads that bring streams and workers that sleep when there is none, as place and team do.
template <int kBringing, int kWorkers>
struct Work : Check<Work<kBringing, kWorkers>, kBringing + kWorkers> {
  RunQueue<Item> queue;
  Parking parking;
  Item items[kBringing];
  sys::Atomic<int> left{kBringing};

  void thread(unsigned index) {
    if (index < kBringing) {
      items[index].at = index % 2;
      items[index].value = 1;
      queue.push(items[index], [this] { parking.unpark_one(); });
      return;
    }
    while (left.load(std::memory_order_seq_cst) > 0) {
      if (Item* const item = queue.pop()) {
        CHECK_THAT(item->value == 1);
        item->value = 2;
        if (left.fetch_sub(1) == 1) parking.unpark_all();
        continue;
      }
      parking.prepare();
      if (queue.any() || left.load(std::memory_order_seq_cst) == 0) {
        parking.cancel();
      } else {
        parking.park();
      }
    }
  }
  void after() { CHECK_THAT(!queue.any()); }
};

/// A queue that ends when its streams have been destroyed: push() may still be on its way out.
struct End : Check<End, 3> {
  RunQueue<Item> queue;
  Item items[2];
  sys::Plain<int> driver = 0;
  sys::Plain<int> woken[2];

  void thread(unsigned index) {
    if (index < 2) {
      queue.push(items[index], [&] {
        woken[index] = driver;  // wake() uses the driver
      });
      return;
    }
    for (int popped = 0; popped < 2;) {
      if (queue.pop() != nullptr) {
        ++popped;
      } else {
        sys::yield();
      }
    }
    queue.wait_until_left();
    driver = 1;  // ends
  }
};

/// Workers that pass streams on, in the order of their priorities.
struct Order : Check<Order, 2> {
  RunQueue<Item> queue;
  Item items[3];

  void thread(unsigned index) {
    const auto nobody = [] {};
    if (index == 0) {
      for (std::size_t i = 0; i < 3; ++i) {
        items[i].at = i;
        queue.push(items[i], nobody);
      }
      return;
    }
    for (int popped = 0; popped < 4;) {
      Item* const item = queue.pop();
      if (item == nullptr) {
        sys::yield();
        continue;
      }
      if (popped++ == 0) queue.push(*item, nobody);
    }
  }
  void after() { CHECK_THAT(!queue.any() && queue.pop() == nullptr); }
};

}  // namespace

void check_run_queue(Run& run) {
  run.bounded<Work<1, 1>>("one brings for one", 3);
  run.random<Work<2, 1>>("two bring for one");
  run.random<Work<2, 2>>("two bring for two");
  run.random<End>("the end of a queue");
  run.random<Order>("streams are passed on");
}

}  // namespace weir::rt::checker
