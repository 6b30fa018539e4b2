// Prefix sums of parts for host cores: in wide vectors, and past the cache where that pays.
#pragma once

#include <weir/weir.hpp>

namespace weir::apps {

/// Implement scan_sums and scan_write of scan.wk, whose groups have `kScanChunk` elements. They add
/// in another order than there, the same one on all processors with vectors of the same width.
template <class T>
weir_status native_scan_sums(const weir_call* call);
template <class T, bool past_cache>
weir_status native_scan_write(const weir_call* call);

inline constexpr std::ptrdiff_t kScanChunk = 4096;
/// Numbers that are added one after the other at most, where the compiler makes no vectors: what a
/// piece begins with is summed by itself.
inline constexpr std::ptrdiff_t kScanPiece = 256;

}  // namespace weir::apps
