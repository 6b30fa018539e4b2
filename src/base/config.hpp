// The environment variables of weir, in one table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rt::config {

struct Variable {
  const char* name;
  const char* meaning;
  /// Returns nullptr for a usable value, otherwise what to do; itself nullptr: any text is usable.
  const char* (*expected)(std::string_view value) = nullptr;
};

/// Every variable that weir reads.
const std::vector<Variable>& variables();

/// WEIR_* variables of the environment that weir does not know, each with the nearest known name.
std::vector<std::string> unknown_variables();

/// Throws Error{invalid_argument} for a variable with an unusable value, also one that only fabrics
/// read. An empty variable counts as unset.
void check_values();

/// Whether every exchange of halos is checked (WEIR_CHECK has halo).
bool checks_halos();

/// Whether frames of this rank carry checksums (WEIR_CHECK has frames).
bool checks_frames();

/// The file of the CUDA driver's library (WEIR_CUDA_DRIVER). Borrowed from the environment.
const char* cuda_driver();

/// Whether the ranks of a machine divide its cores unless they are bound already (WEIR_RANK_CORES).
bool divides_cores();

/// Whether UCX may carry packets between nodes (WEIR_UCX).
bool uses_ucx();

/// How long an idle worker polls before it sleeps, in nanoseconds (WEIR_SPIN_US).
long long spin_ns();

/// Default number of actions of a stream, and tasks of a queue, in flight (WEIR_MAX_IN_FLIGHT).
std::size_t max_in_flight();

/// Silence after which a rank is lost, in nanoseconds (WEIR_LOST_AFTER_MS), once check_values() has
/// accepted it.
std::int64_t lost_after_ns();

/// Time without a completion after which the watchdog reports, in nanoseconds (WEIR_WATCHDOG_S); 0:
/// no watchdog.
std::int64_t watchdog_ns();

/// Whether portable kernels run the items of a phase backwards on the host
/// (WEIR_PORTABLE_BACKWARDS).
bool portable_backwards();

}  // namespace weir::rt::config
