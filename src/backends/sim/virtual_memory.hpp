// The memory of a simulated device in virtual time.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "backends/sim/memory_shares.hpp"
#include "backends/sim/sim_clock.hpp"
#include "backends/sim/sim_model.hpp"

namespace weir::rt {

/// Notifies each kernel when its bytes are transferred, by a timer that is rescheduled when a
/// kernel starts or ends. Used by the thread that drives the clock.
class VirtualMemory final : private SimClock::Timer {
 public:
  VirtualMemory(const SimModel& model, std::shared_ptr<SimClock> clock)
      : model_(model),
        shares_(model.all_memory_rate(), model.thread_memory_rate()),
        clock_(std::move(clock)) {
    clock_->add(*this);
  }
  ~VirtualMemory() { clock_->remove(*this); }

  /// Starts to move the bytes of a kernel, and notifies it when they are moved.
  void move(MemoryShares::Kernel& kernel, double bytes, double threads) noexcept {
    advance();
    shares_.add(kernel, bytes, threads);
    plan();
  }

 private:
  void expired() noexcept override {
    advance();
    while (MemoryShares::Kernel* const kernel = shares_.take_ended()) kernel->moved();
    plan();
  }

  void advance() noexcept {
    const std::int64_t now = clock_->now_ns();
    shares_.advance(model_.usual_ns(seen_ns_, now));
    seen_ns_ = now;
  }

  void plan() noexcept {
    if (shares_.empty()) return;
    const double remaining = std::min(shares_.next_end_ns(), kLongestNs);
    const std::int64_t now = clock_->now_ns();
    clock_->set(*this, now + model_.slowed_ns(now, std::llround(remaining)));
  }

  static constexpr double kLongestNs = 1e17;

  const SimModel model_;
  MemoryShares shares_;
  const std::shared_ptr<SimClock> clock_;
  std::int64_t seen_ns_ = 0;  ///< the time up to which shares_ has advanced
};

}  // namespace weir::rt
