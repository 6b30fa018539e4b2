// Buffer: threads that need its instance in a memory at the same time get the same one, whole.
#include "core/buffer.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

template <int kThreads>
struct Instances : Check<Instances<kThreads>, kThreads> {
  Buffer buffer{nullptr, 1, "b", nullptr, 0, false};
  sys::Atomic<Instance*> first{nullptr};

  void thread(unsigned index) {
    if (index == 0) {
      if (Instance* const found = buffer.find_instance(1)) CHECK_THAT(found->last_use == 0);
    }
    Instance& own = buffer.instance(1);
    CHECK_THAT(own.last_use == 0);
    Instance* expected = nullptr;
    if (!first.compare_exchange_strong(expected, &own, std::memory_order_relaxed)) {
      CHECK_THAT(expected == &own);
    }
    CHECK_THAT(buffer.find_instance(1) == &own);
  }
};

}  // namespace

void check_buffer(Run& run) {
  run.full<Instances<2>>("two threads");
  run.random<Instances<3>>("three threads");
}

}  // namespace weir::rt::checker
