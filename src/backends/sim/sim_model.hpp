// The model of a simulated device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

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

/// Direction of a transfer as seen from the device.
enum class SimDirection : unsigned { in = 0, out = 1 };

/// The link of a device, and the memory behind it.
struct SimLinkModel {
  double bytes_per_s = 6e9;      ///< to the device
  double out_bytes_per_s = 6e9;  ///< from it
  std::int64_t latency_ns = 10'000;
  std::int64_t row_ns = 0;  ///< for each row of a copy that is not contiguous
  bool full_duplex = true;
  std::int64_t allocation_ns = 0;     ///< virtual time: of an instance, before its first copy
  double allocation_bytes_per_s = 0;  ///< likewise; 0: no time
  bool pools_memory = false;          ///< released memory is allocated again in no time

  /// Time the link is occupied by a transfer of a region.
  std::int64_t transfer_ns(SimDirection direction, const Region& region) const noexcept {
    const double rate = direction == SimDirection::in ? bytes_per_s : out_bytes_per_s;
    const auto rows =
        static_cast<std::int64_t>(region.contiguous() ? 0 : region.rows * region.planes);
    return latency_ns + rows * row_ns +
           static_cast<std::int64_t>(static_cast<double>(region.bytes()) / rate * 1e9);
  }

  /// Time the link is occupied by the allocation of an instance.
  std::int64_t allocation_time_ns(std::uint64_t bytes) const noexcept {
    if (allocation_bytes_per_s <= 0) return allocation_ns;
    return allocation_ns +
           static_cast<std::int64_t>(static_cast<double>(bytes) / allocation_bytes_per_s * 1e9);
  }
};

struct SimModel {
  SimLinkModel link;
  bool host = false;            ///< the host itself in virtual time: its memory is the program's
  unsigned cores = 1;           ///< without the reserved cores of the device
  unsigned threads = 1;         ///< hardware threads of a core: what places are made of
  double speed = 1;             ///< of a core, relative to a host core
  std::int64_t slow_at_ns = 0;  ///< virtual time: from then on everything takes `slow_by` times
  double slow_by = 1;
  std::uint64_t memory_bytes = 0;
  bool virtual_time = false;
  double core_flops_per_s = 0;    ///< for kernels with a cost function; 0: measure them
  double memory_bytes_per_s = 0;  ///< shared by all kernels that run on it, likewise; 0: no limit
  double core_memory_bytes_per_s = 0;  ///< most that one core gets of it; 0: no limit
  double tile_loss = 0;                ///< of tile kernels, see work_of()
  double syrk_share = 1, trsm_share = 1,
         potrf_share = 1;       ///< of core_flops_per_s; potrf: getrf, too
  std::int64_t launch_ns = 0;   ///< virtual time: before every kernel
  std::int64_t team_ns = 0;     ///< likewise, before a parallel one
  std::int64_t fork_ns = 0;     ///< likewise, for each thread of a parallel one
  double contention = 1;        ///< likewise: slowdown of places that share a core
  std::int64_t enqueue_ns = 0;  ///< likewise: of the host, for each action that a thread enqueues
  std::int64_t notice_ns = 0;   ///< likewise: from the end of an action until the host learns of it
  bool resolves_dependences = false;  ///< the device's queue resolves dependences
  bool skip_kernels = false;          ///< only model time, and do not copy
  SimFaultPlan faults;

  /// Whether the memory limits kernels.
  bool limits_memory() const noexcept {
    return memory_bytes_per_s > 0 || core_memory_bytes_per_s > 0;
  }
  /// Return what all kernels, and what one thread gets of the memory, in bytes/s; infinite: no
  /// limit.
  double all_memory_rate() const noexcept { return rate_of(memory_bytes_per_s); }
  double thread_memory_rate() const noexcept { return rate_of(core_memory_bytes_per_s) / threads; }

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

  double rate_of(double bytes_per_s) const noexcept {
    constexpr double kNoLimit = std::numeric_limits<double>::infinity();
    return bytes_per_s > 0 ? bytes_per_s * speed : kNoLimit;
  }
};

}  // namespace weir::rt
