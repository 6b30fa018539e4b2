// Where threads of the program wait until what they want may be there.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"

namespace weir::rt {

/// notify() costs one load while no thread waits.
class Bell {
 public:
  /// After a change that was made sequentially consistently.
  void ring() noexcept {
    if (listeners_.load(std::memory_order_seq_cst) == 0) return;
    rings_.fetch_add(1, std::memory_order_acq_rel);
    sys::wake_all(rings_);
  }

  /// Tries until it succeeds or the deadline. try_it() looks sequentially consistently.
  template <class Try>
  bool listen(std::int64_t deadline_ns, Try&& try_it) {
    if (try_it()) return true;
    listeners_.fetch_add(1, std::memory_order_seq_cst);
    bool done = false;
    for (bool late = false; !done && !late; late = sys::now_ns() >= deadline_ns) {
      const std::uint32_t rings = rings_.load(std::memory_order_acquire);
      done = try_it();
      if (!done) sys::wait(rings_, rings, deadline_ns);
    }
    done = done || try_it();
    listeners_.fetch_sub(1, std::memory_order_relaxed);
    return done;
  }

 private:
  sys::Atomic<std::uint32_t> listeners_{0};
  sys::Atomic<std::uint32_t> rings_{0};
};

}  // namespace weir::rt
