// Destroys objects for threads that must not wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "base/threads.hpp"

namespace weir::rt {

/// Destroys objects on behalf of kernels, callbacks and pipeline stages: destruction waits for
/// work, which could be the caller's own. Its thread starts with the first object.
///
/// Each object is destroyed once: a thread that may wait can take an object back and destroy it
/// itself.
class Reaper {
 public:
  using Destroy = std::function<void()>;

  Reaper() = default;
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() { join(); }

  /// Calls destroy() on the reaper's thread, later, unless the object is taken back. Throws Error,
  /// or std::bad_alloc without memory or thread; nothing is destroyed then.
  void add(const void* object, Destroy destroy);
  /// Called by a thread, also the reaper's, that is about to destroy an object. Returns false if
  /// the reaper has destroyed it; waits if that is in progress.
  bool take_back(const void* object) noexcept;
  /// Whether objects are still to be destroyed.
  bool busy() const noexcept;
  /// Waits until busy() is false. Does not wait in a kernel or callback.
  void settle() noexcept;
  /// Rejects further objects, starts no more, and waits until the deadline for the current one.
  void stop(std::int64_t deadline_ns) noexcept;
  /// Waits for the thread. After stop().
  void join() noexcept;

 private:
  struct Request {
    const void* object;
    Destroy destroy;
  };

  void run_thread() noexcept;

  mutable sys::Mutex mutex_;  ///< guards the other fields
  sys::Condition changed_;
  std::deque<Request> requests_ WEIR_GUARDED_BY(mutex_);
  const void* current_ = nullptr;  ///< object that is being destroyed
  const void* id_ = nullptr;       ///< this_thread() of the reaper's thread
  bool stopped_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
