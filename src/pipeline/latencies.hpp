// Ages of items when a stage completed them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <weir/pipeline.h>

#include "base/error.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// A histogram of ages, with classes that are an eighth of their least age wide. Any thread.
class Latencies {
 public:
  void note(std::int64_t age_ns, std::uint64_t items) noexcept {
    items_[class_of(age_ns)].fetch_add(items, std::memory_order_relaxed);
  }
  void read(weir_latency& into) const noexcept {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      into.items[i] = items_[i].load(std::memory_order_relaxed);
    }
  }

  static std::size_t class_of(std::int64_t age_ns) noexcept {
    const auto age = static_cast<std::uint64_t>(std::max<std::int64_t>(age_ns, 0));
    if (age < kParts) return static_cast<std::size_t>(age);
    const auto octave = static_cast<std::size_t>(std::bit_width(age)) - kFirst;
    return std::min<std::size_t>(octave * kParts + (age >> (octave - 1)) % kParts,
                                 WEIR_LATENCY_CLASSES - 1);
  }
  /// The greatest age of a class.
  static std::int64_t most_of(std::size_t index) noexcept {
    if (index < kParts) return static_cast<std::int64_t>(index);
    const std::size_t octave = index / kParts;
    return (static_cast<std::int64_t>(kParts + index % kParts + 1) << (octave - 1)) - 1;
  }

 private:
  static constexpr std::size_t kParts = 8, kFirst = 3;
  std::array<sys::Atomic<std::uint64_t>, WEIR_LATENCY_CLASSES> items_{};
};

/// See weir_latency_percentile(). Throws Error.
inline std::int64_t percentile(const weir_latency& latency, const weir_latency* before,
                               double percent) {
  if (!(percent > 0 && percent <= 100)) {
    fail_argument("percentile {} is out of range: choose more than 0, at most 100", percent);
  }
  const auto items = [&](std::size_t i) {
    const std::uint64_t old = before != nullptr ? before->items[i] : 0;
    return latency.items[i] - std::min(old, latency.items[i]);
  };
  std::uint64_t all = 0, seen = 0;
  for (std::size_t i = 0; i < WEIR_LATENCY_CLASSES; ++i) all += items(i);
  const double wanted = std::ceil(percent * static_cast<double>(all) / 100);
  for (std::size_t i = 0; i < WEIR_LATENCY_CLASSES; ++i) {
    seen += items(i);
    if (seen > 0 && static_cast<double>(seen) >= wanted) return Latencies::most_of(i);
  }
  return -1;
}

}  // namespace weir::rt
