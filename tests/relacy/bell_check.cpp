// Bell: a listener is notified of every change.
#include "pipeline/bell.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

template <int kListeners>
struct Listening : Check<Listening<kListeners>, kListeners + 1> {
  Bell bell;
  sys::Atomic<int> rooms{0};

  void thread(unsigned index) {
    if (index == kListeners) {
      for (int i = 0; i < kListeners; ++i) {
        rooms.fetch_add(1, std::memory_order_seq_cst);
        bell.ring();
      }
      return;
    }
    CHECK_THAT(bell.listen(sys::kNever, [this] { return take(); }));
  }
  bool take() {
    int there = rooms.load(std::memory_order_seq_cst);
    while (there > 0) {
      if (rooms.compare_exchange_weak(there, there - 1, std::memory_order_seq_cst)) return true;
    }
    return false;
  }
};

}  // namespace

void check_bell(Run& run) {
  run.bounded<Listening<1>>("a listener", 4);
  run.random<Listening<2>>("two listeners");
}

}  // namespace weir::rt::checker
