// What the control groups of this process grant it.
#pragma once

#include <cstdint>
#include <string>

namespace weir::rt {

/// The least of what a group and all groups that it is in grant; 0: no limit.
struct GroupLimits {
  double cores = 0;  ///< of processor time
  std::uint64_t memory_bytes = 0;
};

/// Reads the limits from the control groups that are mounted at a folder, of version 2 or 1, for a
/// process whose /proc/PID/cgroup is `groups`. Groups that are not mounted there grant everything.
GroupLimits read_group_limits(const std::string& mount, const std::string& groups);
/// Those of this process.
GroupLimits read_group_limits();

}  // namespace weir::rt
