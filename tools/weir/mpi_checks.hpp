// Checks that ranks which mpirun starts can work.
#pragma once

#include <nlohmann/json.hpp>

#include "finding.hpp"

namespace weir::cli {

/// Opens weir's libraries for UCX and each MPI, and compares the latter with the mpirun and mpiexec
/// in PATH. `description` is that of a runtime.
Findings check_mpi(const nlohmann::ordered_json& description);

}  // namespace weir::cli
