// The description of the library and the machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include <weir/weir.hpp>

namespace weir::cli {

/// The runtime that a command opens; empty texts mean the environment and the defaults.
struct RuntimeChoice {
  std::string domains;
  std::string blas;
};

/// Opens a runtime. Throws weir::Error.
Runtime open_runtime(const RuntimeChoice& choice);

/// Returns weir_runtime_describe() as JSON, keys in its order.
nlohmann::ordered_json describe(const Runtime& runtime);

/// "weir 0.1.0 commit 0123456789ab (backends: host, sim, opencl, null)".
std::string version_line();

/// The folder above that of the tool: with bin, lib and include. Throws std::filesystem_error.
std::string installed_prefix();

}  // namespace weir::cli
