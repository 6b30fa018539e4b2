// Checks that the parts of this installation belong together.
#pragma once

#include "finding.hpp"

namespace weir::cli {

/// Checks which library this tool loads, which others programs may load, and whether pkg-config,
/// CMake and Python find this version. Asks programs in PATH; a program that is absent or does not
/// answer makes no problem.
Findings check_installation();

}  // namespace weir::cli
