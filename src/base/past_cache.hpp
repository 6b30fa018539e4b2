// Non-temporal stores: they bypass the cache, so lines are not read before they are written.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weir::rt {

/// Size in bytes from which memory that is written once is no longer in a cache when it is read.
inline constexpr std::size_t kCacheBytes = std::size_t{24} << 20;

/// Copies bytes, with non-temporal stores for whole lines of the target. Call end_past_cache()
/// afterwards.
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Copies an aligned line of 64 bytes with non-temporal stores. Call end_past_cache() afterwards.
inline void copy_line_past_cache(std::byte* to, const std::byte* from) noexcept {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < 64; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#else
  std::memcpy(to, from, 64);
#endif
}

/// Orders earlier non-temporal stores before later stores of this thread.
void end_past_cache() noexcept;

}  // namespace weir::rt
