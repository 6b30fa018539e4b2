// Writing past the cache: lines of memory are not read before they are written.
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weir::rt {

/// Bytes beyond which memory that is written once is not in a cache when it is read again.
inline constexpr std::size_t kCacheBytes = std::size_t{24} << 20;

/// Copies bytes, whole lines of the target past the cache. Then end_past_cache().
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Copies a line of 64 bytes, on 64, past the cache. Then end_past_cache().
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

/// Orders what has been written past the cache before what this thread writes next.
void end_past_cache() noexcept;

}  // namespace weir::rt
