#include "base/past_cache.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace weir::rt {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kStoredLine = 64;

[[gnu::target("avx512f")]] void stream_by_64(std::byte* to, const std::byte* from,
                                             std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += kStoredLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  }
}

void stream_by_16(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t kVector = 16;
  for (std::size_t i = 0; i < bytes; i += kVector) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}

}  // namespace

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  static const auto stream = __builtin_cpu_supports("avx512f") ? stream_by_64 : stream_by_16;
  const std::size_t head = std::min(
      bytes, (kStoredLine - reinterpret_cast<std::uintptr_t>(to) % kStoredLine) % kStoredLine);
  const std::size_t lines = (bytes - head) / kStoredLine * kStoredLine;
  std::memcpy(to, from, head);
  stream(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

void end_past_cache() noexcept { _mm_sfence(); }

#else

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}
void end_past_cache() noexcept {}

#endif

}  // namespace weir::rt
