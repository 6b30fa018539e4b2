// Owning a queue for a moment, from a thread that may wait.
#pragma once

#include "runtime/queue.hpp"

namespace weir::rt {

class Queue::Ownership {
 public:
  explicit Ownership(Queue& queue) noexcept : queue_(queue) {
    while (!queue_.own_as(Owner::worker)) sys::yield();
  }
  Ownership(const Ownership&) = delete;
  Ownership& operator=(const Ownership&) = delete;
  ~Ownership() {
    queue_.disown();
    queue_.progress();  // what came meanwhile
  }

 private:
  Queue& queue_;
};

}  // namespace weir::rt
