#include "base/handle.hpp"

#include <deque>
#include <new>

#include "base/threads.hpp"

namespace weir::rt {

struct HandleHeap::State {
  sys::Mutex mutex;
  std::deque<void*> resting;
};

/// Made once and never freed: handles may be used until the process ends.
HandleHeap::State& HandleHeap::state() {
  static sys::Mutex making;
  sys::Lock lock(making);
  if (state_ == nullptr) state_ = new State;
  return *state_;
}

void* HandleHeap::allocate() {
  State& heap = state();
  sys::Lock lock(heap.mutex);
  if (heap.resting.size() > kResting) {
    void* const block = heap.resting.front();
    heap.resting.pop_front();
    return block;
  }
  return ::operator new(bytes_, std::align_val_t{64});
}

void HandleHeap::release(void* block) noexcept {
  try {
    State& heap = state();
    sys::Lock lock(heap.mutex);
    heap.resting.push_back(block);
  } catch (...) {
    // Without memory to remember it the block rests for ever.
  }
}

}  // namespace weir::rt
