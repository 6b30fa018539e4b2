// The identity of a thread, and whether it must not wait for weir's own work.
#pragma once

#include <memory>

namespace weir::rt {

/// An id that differs from that of every other live thread.
const void* this_thread() noexcept;

/// Returns a pointer that expires when the calling thread ends, the same for each call of a thread.
/// Throws std::bad_alloc.
std::weak_ptr<const void> thread_lifetime();

/// Marks the calling thread as running a kernel or a callback while it exists: waiting for an event
/// there could deadlock. Nests.
class NoWaitScope {
 public:
  NoWaitScope() noexcept { ++depth(); }
  NoWaitScope(const NoWaitScope&) = delete;
  NoWaitScope& operator=(const NoWaitScope&) = delete;
  ~NoWaitScope() { --depth(); }

  static bool active() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept;
};

}  // namespace weir::rt
