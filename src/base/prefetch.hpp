// Fetching lines that another core wrote last, before they are needed.
#pragma once

#include <cstddef>

namespace weir::rt {

/// Fetches the first `bytes` of an object for writing, without waiting.
inline void prefetch_for_write(const void* object, std::size_t bytes) noexcept {
  const char* const start = static_cast<const char*>(object);
  for (std::size_t line = 0; line < bytes; line += 64) {
#if defined(__x86_64__)
    // The compiler's instruction for baseline x86-64 fetches only a shared copy.
    asm volatile("prefetchw %0" : : "m"(start[line]));
#else
    __builtin_prefetch(start + line, 1);
#endif
  }
}

}  // namespace weir::rt
