#include "pipeline/latencies.hpp"

#include <cmath>

#include "base/error.hpp"

namespace weir::rt {

std::int64_t percentile(const weir_latency& latency, const weir_latency* before, double percent) {
  if (!(percent > 0 && percent <= 100)) {
    fail_argument("percentile {} is none: more than 0, at most 100", percent);
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
