// The statistics of a stream.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <weir/runtime.h>

#include "base/threads.hpp"
#include "core/action.hpp"
#include "core/buffer.hpp"

namespace weir::rt {

/// Counts the actions of a stream. Drains and markers are the library's, and are counted apart. Any
/// thread reads.
class StreamCounters {
 public:
  // Producers.
  void add_drain() noexcept { drains_.fetch_add(1, std::memory_order_relaxed); }
  void remove_drain() noexcept { drains_.fetch_sub(1, std::memory_order_relaxed); }
  void add_non_ordering() noexcept { non_ordering_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns the number of markers and fences among the enqueued actions.
  std::uint64_t non_ordering() const noexcept { return read(non_ordering_); }

  // The owner.
  void add_drained() noexcept { drained_.fetch_add(1, std::memory_order_relaxed); }
  void add_failed() noexcept { failed_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts the bytes of a completed transfer; does nothing for other actions.
  void add_transfer(const Action& action) noexcept {
    if (action.kind != ActionKind::transfer || action.status != WEIR_STATUS_OK) return;
    if (action.traits.elided) {
      elided_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool from_host = action.operands()[0].memory == kHostMemory;
    const bool to_host = action.operands()[1].memory == kHostMemory;
    if (from_host && to_host) return;
    auto& counter = from_host ? h2d_ : to_host ? d2h_ : d2d_;
    counter.fetch_add(action.bytes(), std::memory_order_relaxed);
  }

  /// Adds the statistics of the program's actions. A drain in flight may be included in the number
  /// of drains only.
  void add_to(weir_stats& stats, std::uint64_t enqueued, std::uint64_t completed) const noexcept {
    const auto without = [](std::uint64_t all, std::uint64_t drains) {
      return all - std::min(all, drains);
    };
    stats.actions_enqueued += without(enqueued, read(drains_));
    stats.actions_completed += without(completed, read(drained_));
    stats.actions_failed += read(failed_);
    stats.bytes_h2d += read(h2d_);
    stats.bytes_d2h += read(d2h_);
    stats.bytes_d2d += read(d2d_);
    stats.transfers_elided += read(elided_);
  }

 private:
  static std::uint64_t read(const sys::Atomic<std::uint64_t>& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
  }

  sys::Atomic<std::uint64_t> drains_{0}, non_ordering_{0};  ///< enqueued
  sys::Atomic<std::uint64_t> drained_{0}, failed_{0}, h2d_{0}, d2h_{0}, d2d_{0}, elided_{0};
};

}  // namespace weir::rt
