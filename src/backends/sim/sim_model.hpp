// The model of a simulated card.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/backend.hpp"

namespace weir::rt {

/// Numbers of the operations that fail, counted from 1; 0: none.
struct SimFaultPlan {
  std::uint64_t lost_at = 0;  ///< among allocations, transfers and kernels together
  std::uint64_t fail_allocation = 0;
  std::uint64_t fail_copy = 0;
  std::uint64_t fail_kernel = 0;

  bool any() const noexcept {
    return lost_at > 0 || fail_allocation > 0 || fail_copy > 0 || fail_kernel > 0;
  }
};

struct SimModel {
  unsigned cores = 1;    ///< without the reserved cores of the card
  unsigned threads = 1;  ///< hardware threads of a core: what places are made of
  double link_bytes_per_s = 6e9;
  std::int64_t link_latency_ns = 10'000;
  bool full_duplex = true;
  double speed = 1;             ///< of a core, relative to a host core
  std::int64_t slow_at_ns = 0;  ///< virtual time: from then on everything takes `slow_by` times
  double slow_by = 1;
  std::uint64_t memory_bytes = 0;
  bool virtual_time = false;
  double core_flops_per_s = 0;    ///< for kernels with a cost function; 0: measure them
  double memory_bytes_per_s = 0;  ///< shared by all kernels that run on it, likewise; 0: no limit
  std::int64_t launch_ns = 0;     ///< virtual time: before every kernel
  std::int64_t fork_ns = 0;       ///< likewise, for each thread of a parallel one
  double contention = 1;          ///< likewise: slowdown of places that share a core
  bool resolves_dependences = false;  ///< the card's queue resolves dependences
  bool skip_kernels = false;          ///< only model time, and in real time do not copy
  SimFaultPlan faults;

  /// Returns the hardware threads of all cores.
  unsigned all_threads() const noexcept { return cores * threads; }

  /// The duration of an operation that starts at `now_ns` and takes `ns` >= 0 at normal speed.
  std::int64_t slowed_ns(std::int64_t now_ns, std::int64_t ns) const noexcept {
    constexpr double kLongestNs = 1e17;
    const std::int64_t before = std::clamp<std::int64_t>(slow_at_ns - now_ns, 0, ns);
    const double slow = static_cast<double>(ns - before) * slow_by;
    return before + static_cast<std::int64_t>(std::min(slow, kLongestNs));
  }

  /// The inverse: the duration at normal speed of an operation between two times.
  double usual_ns(std::int64_t from_ns, std::int64_t to_ns) const noexcept {
    const std::int64_t all = to_ns - from_ns;
    const std::int64_t before = std::clamp<std::int64_t>(slow_at_ns - from_ns, 0, all);
    return static_cast<double>(before) + static_cast<double>(all - before) / slow_by;
  }

  /// Time the link is occupied by a transfer.
  std::int64_t transfer_ns(std::uint64_t bytes) const noexcept {
    return link_latency_ns +
           static_cast<std::int64_t>(static_cast<double>(bytes) / link_bytes_per_s * 1e9);
  }
};

/// Direction of a transfer as seen from the card.
enum class SimDirection : unsigned { in = 0, out = 1 };

}  // namespace weir::rt
