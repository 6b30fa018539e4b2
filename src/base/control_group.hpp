// The limits of the control groups of this process.
#pragma once

#include <cstdint>
#include <string>

namespace weir::rt {

/// The least limits of a group and its ancestors; 0: no limit.
struct GroupLimits {
  double cores = 0;  ///< of processor time
  std::uint64_t memory_bytes = 0;
};

/// Reads the limits from the control groups that are mounted at a folder, of version 2 or 1, for a
/// process whose /proc/PID/cgroup is `groups`. Groups that are not mounted there have no limits.
GroupLimits read_group_limits(const std::string& mount, const std::string& groups);
/// Reads the limits of this process.
GroupLimits read_group_limits();

}  // namespace weir::rt
