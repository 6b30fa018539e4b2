#include "backend/copy_bytes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace weir::rt {

namespace {

/// Copies of so many bytes in short rows go past the cache: a plain store would read each line of
/// the target first, which long rows do without anyway.
constexpr std::uint64_t kManyBytes = 1 << 20, kShortRow = 16 << 10, kLine = 64;

#if defined(__x86_64__)

[[gnu::target("avx512f")]] void stream_by_64(std::byte* to, const std::byte* from,
                                             std::uint64_t bytes) noexcept {
  for (std::uint64_t i = 0; i < bytes; i += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  }
}

void stream_by_16(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kVector = 16;
  for (std::uint64_t i = 0; i < bytes; i += kVector) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}

void copy_past_cache(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  static const auto stream = __builtin_cpu_supports("avx512f") ? stream_by_64 : stream_by_16;
  const std::uint64_t head =
      std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  const std::uint64_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  stream(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

/// What went past the cache is there before what is written next.
void finish_past_cache() noexcept { _mm_sfence(); }

#else

void copy_past_cache(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}
void finish_past_cache() noexcept {}

#endif

/// The same bytes with rows that touch each other joined.
Region joined(Region region) noexcept {
  if (region.planes > 1 && region.plane_stride == region.rows * region.row_stride) {
    region.rows *= region.planes;
    region.planes = 1;
  }
  if (region.rows > 1 && region.row_stride == region.row) {
    region.row *= region.rows;
    region.rows = 1;
  }
  return region;
}

/// Walks the bytes of a region in contiguous pieces.
class Cursor {
 public:
  explicit Cursor(const Region& region) : region_(joined(region)), left_(region_.row) {}

  std::uint64_t position() const noexcept {
    return region_.offset + plane_ * region_.plane_stride + row_ * region_.row_stride +
           (region_.row - left_);
  }
  std::uint64_t contiguous() const noexcept { return left_; }
  void advance(std::uint64_t bytes) noexcept {
    left_ -= bytes;
    if (left_ > 0) return;
    left_ = region_.row;
    if (++row_ == region_.rows) {
      row_ = 0;
      ++plane_;
    }
  }

 private:
  const Region region_;
  std::uint64_t left_;
  std::uint64_t row_ = 0, plane_ = 0;
};

}  // namespace

void copy_bytes(std::byte* target, const Region& target_region, const std::byte* source,
                const Region& source_region) noexcept {
  Cursor to(target_region), from(source_region);
  const std::uint64_t row = std::min(to.contiguous(), from.contiguous());
  const bool past_cache =
      source_region.bytes() >= kManyBytes && row <= kShortRow && row >= 4 * kLine;
  for (std::uint64_t left = source_region.bytes(); left > 0;) {
    const std::uint64_t piece = std::min(to.contiguous(), from.contiguous());
    if (past_cache) {
      copy_past_cache(target + to.position(), source + from.position(), piece);
    } else {
      std::memcpy(target + to.position(), source + from.position(), piece);
    }
    to.advance(piece);
    from.advance(piece);
    left -= piece;
  }
  if (past_cache) finish_past_cache();
}

}  // namespace weir::rt
