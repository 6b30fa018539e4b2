// Writing past the cache: lines of memory are not read before they are written, which pays where
// they would not be read again before they leave the cache.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <weir/weir.hpp>

namespace weir::apps {

/// Bytes that a program goes through again and again, beyond which it pays.
inline constexpr std::size_t kCacheBytes = std::size_t{24} << 20;

/// Elements of T in a line of the cache.
template <class T>
inline constexpr std::ptrdiff_t kLineOf = 64 / static_cast<std::ptrdiff_t>(sizeof(T));

/// How many elements an address is past the beginning of a line.
template <class T>
std::ptrdiff_t past_line(const T* at) noexcept {
  return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(at) % 64 / sizeof(T));
}

/// Writes lines of memory; both addresses begin one, and count is of whole lines.
template <class T>
[[gnu::always_inline]] inline void stream_lines(T* to, const T* from, std::ptrdiff_t count) {
#if defined(__x86_64__)
  constexpr std::ptrdiff_t kStep = 16 / sizeof(T);
  for (std::ptrdiff_t i = 0; i < count; i += kStep) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#else
  for (std::ptrdiff_t i = 0; i < count; ++i) to[i] = from[i];
#endif
}

/// Copies elements whose source and target have the same offset in a cache line, whole lines past
/// the cache, by the widest stores of the processor.
template <class T>
void stream_copy(T* to, const T* from, std::ptrdiff_t count) noexcept;

/// Orders the writes of a thread past the cache before its later operations; called at the end of a
/// kernel.
inline void end_stream() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Native code for host cores of a portable kernel that makes cells in rows, with the same bits:
/// it writes operand 0, its first scalars are the width and the height in cells and the elements
/// from row to row. Its groups are pieces of a row, of 256 cells or a part of that. The payload is
/// its weir_portable_kernel.
template <class T>
weir_status make_rows_past_cache(const weir_call* call);

}  // namespace weir::apps
