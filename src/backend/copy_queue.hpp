// The requests of a thread that makes copies one at a time.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "base/threads.hpp"

namespace weir::rt {

/// A FIFO from any thread to one. A request that was added is returned by next(), even after
/// close().
template <class Request>
class CopyQueue {
 public:
  /// Adds a request, not after close(). Throws std::bad_alloc. Any thread.
  void add(Request request) {
    {
      const sys::Lock lock(mutex_);
      requests_.push_back(std::move(request));
    }
    changed_.notify_one();
  }
  /// Returns the oldest request. Waits for one, or for close(): then none.
  std::optional<Request> next() noexcept {
    sys::Lock lock(mutex_);
    while (requests_.empty() && !closed_) changed_.wait(lock);
    if (requests_.empty()) return std::nullopt;
    std::optional<Request> request(std::move(requests_.front()));
    requests_.pop_front();
    return request;
  }
  /// Ends next() once there are no more requests.
  void close() noexcept {
    {
      const sys::Lock lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  sys::Mutex mutex_;
  sys::Condition changed_;
  std::deque<Request> requests_ WEIR_GUARDED_BY(mutex_);
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
};

}  // namespace weir::rt
