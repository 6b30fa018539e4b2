// Which thread this is, and which must not wait for weir's own work.
#pragma once

#include <memory>

namespace weir::rt {

/// Differs from that of every other thread that lives.
const void* this_thread() noexcept;

/// Returns what expires when the calling thread ends, the same for each call of a thread. Throws
/// std::bad_alloc.
std::weak_ptr<const void> thread_lifetime();

/// While one exists, the calling thread runs a kernel or a callback: waiting for an event there
/// could wait for itself. Nests.
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
