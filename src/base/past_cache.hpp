// Writing past the cache: lines of memory are not read before they are written.
#pragma once

#include <cstddef>

namespace weir::rt {

/// Bytes beyond which memory that is written once is not in a cache when it is read again.
inline constexpr std::size_t kCacheBytes = std::size_t{24} << 20;

/// Copies bytes, whole lines of the target past the cache. Then end_past_cache().
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Orders what has been written past the cache before what this thread writes next.
void end_past_cache() noexcept;

}  // namespace weir::rt
