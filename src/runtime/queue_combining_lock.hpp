// Holds the combining lock of a queue for a scope, on a thread that may wait.
#pragma once

#include "runtime/queue.hpp"

namespace weir::rt {

class Queue::CombiningLock {
 public:
  explicit CombiningLock(Queue& queue) noexcept : queue_(queue) {
    while (!queue_.try_lock_as(LockState::binding)) sys::yield();
  }
  CombiningLock(const CombiningLock&) = delete;
  CombiningLock& operator=(const CombiningLock&) = delete;
  ~CombiningLock() {
    queue_.unlock();
    queue_.try_progress();  // does the work that arrived meanwhile
  }

 private:
  Queue& queue_;
};

}  // namespace weir::rt
