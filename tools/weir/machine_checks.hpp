// What the operating system grants this process.
#pragma once

#include <nlohmann/json.hpp>

#include "finding.hpp"

namespace weir::cli {

/// Checks cores, topology, memory, clock frequency and environment variables. `description` is that
/// of a runtime.
Findings check_machine(const nlohmann::ordered_json& description);

}  // namespace weir::cli
