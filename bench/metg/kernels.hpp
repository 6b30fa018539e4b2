// The loops inside tasks, in a library that all programs link: every runtime runs the same code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir_bench::metg {

inline constexpr double flops_per_iteration = 128;  ///< of compute()
inline constexpr std::size_t swept_bytes = 256;     ///< of the area in an iteration of sweep()
inline constexpr double bytes_per_iteration = 2 * swept_bytes;  ///< read and written

/// 64 fused multiply-adds in each iteration, on a local array.
void compute(std::uint64_t iterations);

/// Reads and writes the next 256 bytes of an area in each iteration, from `offset`, round and
/// round. Both sizes are multiples of 256 bytes.
void sweep(double* area, std::size_t bytes, std::size_t offset, std::uint64_t iterations);

}  // namespace weir_bench::metg
