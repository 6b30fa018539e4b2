// Devices beside the host, whether a command opens them or not.
#pragma once

#include <nlohmann/json.hpp>

#include <weir/weir.hpp>

namespace weir::cli {

/// Returns the devices of drivers that can be opened now, kind by kind: for each `domain`,
/// `description`, `cores`, `memory_bytes` and `portable_kernels`, or `domain` and `problem`.
/// Returns none when the program runs with elevated privileges, because drivers trust the user's
/// environment variables.
nlohmann::ordered_json available_devices();

/// Adds `portable_kernels`, whether the domain compiles portable kernels, to the domains with cores
/// in a description of the runtime. Runs such a kernel to find out.
void add_compilers(nlohmann::ordered_json& description, const Runtime& runtime);

}  // namespace weir::cli
