// What this user may read and write.
#pragma once

#include "finding.hpp"

namespace weir::cli {

/// Checks /proc, /sys, shared memory, the cache folder, the files of devices and of OpenCL, locked
/// memory, and copies between processes. Opens nothing and leaves nothing behind.
Findings check_permissions();

}  // namespace weir::cli
