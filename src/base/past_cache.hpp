// Writing past the cache: lines of memory are not read before they are written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weir::rt {

/// Bytes beyond which memory that is written once is not in a cache when it is read again.
inline constexpr std::size_t kCacheBytes = std::size_t{24} << 20;

/// Copies bytes, whole lines of the target past the cache. Then end_past_cache().
inline void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  constexpr std::size_t kLine = 64, kStep = sizeof(__m128i);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min((kLine - past) % kLine, bytes);
  std::memcpy(to, from, head);
  const std::size_t end = head + (bytes - head) / kLine * kLine;
  for (std::size_t at = head; at < end; at += kLine) {
    for (std::size_t step = 0; step < kLine; step += kStep) {
      const auto* const source = reinterpret_cast<const __m128i*>(from + at + step);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + step), _mm_loadu_si128(source));
    }
  }
  std::memcpy(to + end, from + end, bytes - end);
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Orders what has been written past the cache before what this thread writes next.
inline void end_past_cache() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace weir::rt
