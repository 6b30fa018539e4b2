#include "runtime/live_runtime.hpp"

#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "base/threads.hpp"
#include "runtime/runtime.hpp"

namespace weir::rt {

class LiveRuntime::All {
 public:
  /// Never destroyed, because a runtime may outlive static objects.
  static All& get() {
    static All* const all = new All;
    return *all;
  }

  void add(LiveRuntime& live) noexcept {
    const sys::Lock lock(mutex_);
    live.after_ = first_;
    if (first_ != nullptr) first_->before_ = &live;
    first_ = &live;
  }
  void remove(const LiveRuntime& live) noexcept {
    const sys::Lock lock(mutex_);
    (live.before_ != nullptr ? live.before_->after_ : first_) = live.after_;
    if (live.after_ != nullptr) live.after_->before_ = live.before_;
  }

 private:
  All() : process_(getpid()) {
    static_cast<void>(std::atexit([] { get().report(); }));
  }

  /// Does nothing in a forked child: other threads may have held locks.
  void report() noexcept {
    if (getpid() != process_) return;
    const sys::Lock lock(mutex_);
    for (LiveRuntime* live = first_; live != nullptr; live = live->after_) {
      live->runtime_->report_unreported();
    }
  }

  const pid_t process_;
  sys::Mutex mutex_;
  LiveRuntime* first_ = nullptr;
};

void LiveRuntime::begin(Runtime& runtime) noexcept {
  runtime_ = &runtime;
  try {
    All::get().add(*this);
  } catch (...) {  // no memory: the process exits without a report
    runtime_ = nullptr;
  }
}

void LiveRuntime::end() noexcept {
  if (std::exchange(runtime_, nullptr) != nullptr) All::get().remove(*this);
}

}  // namespace weir::rt
