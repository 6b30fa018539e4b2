// A lock for sections of a few instructions.
#pragma once

#include <atomic>

#include "base/thread_safety.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Spins briefly, then yields, because the owner may have been descheduled. Never held across a
/// callback.
class WEIR_CAPABILITY("spin lock") SpinLock {
 public:
  void lock() noexcept WEIR_ACQUIRE() {
    for (unsigned tries = 0; flag_.exchange(true, std::memory_order_acquire); ++tries) {
      while (flag_.load(std::memory_order_relaxed)) {
        if (++tries % 64 == 0) {
          sys::yield();
        } else {
          sys::pause();
        }
      }
    }
  }
  bool try_lock() noexcept WEIR_TRY_ACQUIRE(true) {
    return !flag_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept WEIR_RELEASE() { flag_.store(false, std::memory_order_release); }

 private:
  sys::Atomic<bool> flag_{false};
};

/// Holds a SpinLock while it lives.
class WEIR_SCOPED_CAPABILITY SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) noexcept WEIR_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;
  ~SpinGuard() WEIR_RELEASE() { lock_.unlock(); }

 private:
  SpinLock& lock_;
};

}  // namespace weir::rt
