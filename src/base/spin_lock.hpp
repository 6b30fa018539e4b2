// A lock for sections of a few instructions.
#pragma once

#include <atomic>

#include "base/threads.hpp"

namespace weir::rt {

/// Spins briefly, then yields: the owner may have been descheduled. Never waited for across a
/// callback.
class SpinLock {
 public:
  void lock() noexcept {
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
  bool try_lock() noexcept { return !flag_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  sys::Atomic<bool> flag_{false};
};

/// Holds a SpinLock while it lives.
class SpinGuard {
 public:
  explicit SpinGuard(SpinLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;
  ~SpinGuard() { lock_.unlock(); }

 private:
  SpinLock& lock_;
};

}  // namespace weir::rt
