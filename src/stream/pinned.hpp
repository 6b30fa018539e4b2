// Streams and queues that a thread uses without owning their handles.
#pragma once

#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

/// Objects that are not destroyed while this exists. Each has a number of `pins`, which the mutex
/// of its list guards; a destruction waits until that is 0.
template <class Object>
class Pinned {
 public:
  /// Pins the objects. The caller holds the mutex; the destructor locks it.
  Pinned(sys::Mutex& mutex, sys::Condition& unpinned, std::vector<Object*> objects) noexcept
      : mutex_(mutex), unpinned_(unpinned), list_(std::move(objects)) {
    for (Object* object : list_) ++object->pins;
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    sys::Lock lock(mutex_);
    for (Object* object : list_) --object->pins;
    lock.unlock();
    unpinned_.notify_all();
  }

  const std::vector<Object*>& list() const noexcept { return list_; }

 private:
  sys::Mutex& mutex_;
  sys::Condition& unpinned_;
  const std::vector<Object*> list_;
};

}  // namespace weir::rt
