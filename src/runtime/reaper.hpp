// Destruction on behalf of threads that may not wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "base/threads.hpp"

namespace weir::rt {

/// Destroys objects that kernels, callbacks and stages of pipelines destroy: this waits for work,
/// which there could be the caller's own. The thread that does it starts with the first object.
///
/// Each object is destroyed once: a thread that may wait takes back what is still to be done.
class Reaper {
 public:
  using Destroy = std::function<void()>;

  Reaper() = default;
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() { join(); }

  /// Calls destroy() on the thread, later; not again for an object that waits for it. Throws Error
  /// or std::bad_alloc when there is no thread or memory: then nothing is destroyed.
  void add(const void* object, Destroy destroy);
  /// For a thread that is about to destroy an object itself, the reaper's included. False when it
  /// is gone: the reaper was at it, and the call has waited for that.
  bool take_back(const void* object) noexcept;
  /// Whether something is still to be destroyed.
  bool busy() const noexcept;
  /// Waits until nothing is; a kernel or callback does not wait.
  void settle() noexcept;
  /// Takes and begins no more, and waits until the deadline for what was begun.
  void stop(std::int64_t deadline_ns) noexcept;
  /// Waits for the thread. After stop().
  void join() noexcept;

 private:
  struct Request {
    const void* object;
    Destroy destroy;
  };

  void run_thread() noexcept;

  mutable sys::Mutex mutex_;  ///< of the rest
  sys::Condition changed_;
  std::deque<Request> requests_ WEIR_GUARDED_BY(mutex_);
  const void* current_ = nullptr;  ///< being destroyed
  const void* id_ = nullptr;       ///< of the thread: see this_thread()
  bool stopped_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
