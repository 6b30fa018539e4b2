// The memory of a simulated device in real time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>

#include "backends/sim/memory_shares.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Delays the threads that simulate kernels by the time that their memory traffic takes.
/// Thread-safe.
class TimedMemory {
 public:
  /// As of MemoryShares.
  TimedMemory(double bytes_per_s, double most_per_thread) : shares_(bytes_per_s, most_per_thread) {}

  /// Moves `bytes` > 0 of a kernel with a number of threads; returns at the modelled time.
  void move(double bytes, double threads) {
    sys::Lock lock(mutex_);
    const auto self = waiting_.emplace(waiting_.end());
    advance();
    shares_.add(*self, bytes, threads);
    while (!self->ended) {
      const double remaining = std::min(shares_.next_end_ns(), kLongestNs);
      changed_.wait_until(lock, seen_ns_ + std::llround(remaining));
      advance();
    }
    waiting_.erase(self);
  }

 private:
  struct Waiting final : MemoryShares::Kernel {
    void moved() noexcept override { ended = true; }
    bool ended = false;
  };

  static constexpr double kLongestNs = 1e17;

  /// Completes each kernel at its modelled time, independent of when a thread checks.
  void advance() noexcept WEIR_REQUIRES(mutex_) {
    const std::int64_t now = sys::now_ns();
    auto remaining = static_cast<double>(now - seen_ns_);
    seen_ns_ = now;
    while (!shares_.empty() && shares_.next_end_ns() <= remaining) {
      const double step = shares_.next_end_ns();
      shares_.advance(step);
      while (MemoryShares::Kernel* const kernel = shares_.take_ended()) kernel->moved();
      remaining -= step;
      changed_.notify_all();
    }
    shares_.advance(remaining);
  }

  sys::Mutex mutex_;  // guards all members below
  sys::Condition changed_;
  MemoryShares shares_ WEIR_GUARDED_BY(mutex_);
  std::list<Waiting> waiting_ WEIR_GUARDED_BY(mutex_);
  std::int64_t seen_ns_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rt
