// Reorder: batches leave in the order in which they were taken, each once, and none stays behind.
#include "pipeline/reorder.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Workers take numbers, "work" on them, and send off what is done.
template <int kWorkers, int kNumbers, int kWindow>
struct Numbers : Check<Numbers<kWorkers, kNumbers, kWindow>, kWorkers> {
  Reorder reorder{kWindow};
  sys::Plain<int> next{0};          // the taker's
  sys::Plain<int> values[kWindow];  // of the blocks
  sys::Plain<int> sent{0};          // the sender's
  sys::Atomic<int> done{0};

  void before() {
    for (auto& value : values) value = -1;
  }
  void thread(unsigned) {
    while (done.load(std::memory_order_relaxed) < kNumbers) {
      int number = -1;
      Reorder::Block* const block = reorder.take([&](Reorder::Block&) {
        if (next == kNumbers) return false;
        number = next++;
        return true;
      });
      if (block != nullptr) {
        values[block - reorder.blocks().data()] = number;
        block->ready.store(true, std::memory_order_seq_cst);
      }
      const bool tried = reorder.send([&](Reorder::Block&) {
        CHECK_THAT(static_cast<int>(values[sent % kWindow]) == static_cast<int>(sent));
        ++sent;
        done.fetch_add(1, std::memory_order_relaxed);
        return true;
      });
      if (block == nullptr && !tried) sys::yield();
    }
  }
  void after() { CHECK_THAT(reorder.empty() && !reorder.ready() && reorder.open()); }
};

}  // namespace

void check_reorder(Run& run) {
  run.random<Numbers<2, 4, 2>>("two workers");
  run.random<Numbers<3, 4, 2>>("three workers");
  run.random<Numbers<2, 3, 1>>("a window of one batch");
}

}  // namespace weir::rt::checker
