// WorkerGroups: an item that is put while the pipeline starts is not missed.
#include "pipeline/worker_groups.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// A thread that puts an item, beside the thread that seals the groups and then is the worker.
struct Start : Check<Start, 2> {
  WorkerGroups groups;
  sys::Atomic<int> items{0};

  Start() { groups.create({1}); }
  void thread(unsigned index) {
    if (index == 0) {
      items.store(1, std::memory_order_seq_cst);
      groups.wake_one();
      return;
    }
    groups.seal();
    Parking& parking = groups[0].parking;
    while (items.load(std::memory_order_seq_cst) == 0) {
      parking.prepare();
      if (items.load(std::memory_order_seq_cst) > 0) {
        parking.cancel();
      } else {
        parking.park();
      }
    }
  }
};

}  // namespace

void check_worker_groups(Run& run) {
  run.bounded<Start>("an item at the start", 3);
  run.random<Start>("an item at the start, at random");
}

}  // namespace weir::rt::checker
