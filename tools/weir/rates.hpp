// How fast the links and cores of domains are: measured once, and kept for the next time.
#pragma once

#include <nlohmann/json.hpp>

#include <weir/weir.hpp>

namespace weir::cli {

/// Adds an object "measured" to each domain of a description (weir_runtime_describe()) that has
/// cores:
///   gemm_gflops   double-precision products on all its cores
///   copy_gbps     bytes read and written per second when all its cores copy memory; both are the
///                 larger of two measurements, before and after the others, as what else runs on
///                 the machine only slows one
///   h2d_gbps, d2h_gbps, both_gbps   transfers of one direction, and of both at once, summed;
///                 null where the domain shares the host's memory
///   latency_us    of a transfer of 64 bytes, until the program knows; likewise
///   date          of the measurement
///   problem       why something could not be measured, then instead of the others
/// All are null in virtual time for what its model leaves out. What was measured on this machine
/// before, for the same domain and BLAS, is taken from a file in the user's cache folder
/// (XDG_CACHE_HOME) unless `refresh`. Takes about a second for each domain.
void add_rates(nlohmann::ordered_json& description, const Runtime& runtime, bool refresh);

}  // namespace weir::cli
