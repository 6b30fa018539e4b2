#include "backend/copy_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/past_cache.hpp"

namespace weir::rt {

namespace {

/// Copies of at least kManyBytes in short rows bypass the cache: a plain store would first read
/// each line of the target. Long rows avoid that read without it.
constexpr std::uint64_t kManyBytes = 1 << 20, kShortRow = 16 << 10, kRow = 256;

/// Iterates over a region in contiguous pieces.
class Cursor {
 public:
  explicit Cursor(const Region& region) : region_(joined(region)), remaining_(region_.row) {}

  std::uint64_t position() const noexcept {
    return region_.offset + plane_ * region_.plane_stride + row_ * region_.row_stride +
           (region_.row - remaining_);
  }
  std::uint64_t contiguous() const noexcept { return remaining_; }
  void advance(std::uint64_t bytes) noexcept {
    remaining_ -= bytes;
    if (remaining_ > 0) return;
    remaining_ = region_.row;
    if (++row_ == region_.rows) {
      row_ = 0;
      ++plane_;
    }
  }

 private:
  const Region region_;
  std::uint64_t remaining_;
  std::uint64_t row_ = 0, plane_ = 0;
};

}  // namespace

Region joined(Region region) noexcept {
  if (region.rows == 1) region.row_stride = region.plane_stride;
  if (region.planes > 1 && region.plane_stride == region.rows * region.row_stride) {
    region.rows *= std::exchange(region.planes, std::uint16_t{1});
  }
  if (region.rows > 1 && region.row_stride == region.row) {
    region.row *= std::exchange(region.rows, 1u);
  }
  return region;
}

void copy_bytes(std::byte* target, const Region& target_region, const std::byte* source,
                const Region& source_region) noexcept {
  Cursor to(target_region), from(source_region);
  const std::uint64_t row = std::min(to.contiguous(), from.contiguous());
  const bool past_cache = source_region.bytes() >= kManyBytes && row <= kShortRow && row >= kRow;
  for (std::uint64_t remaining = source_region.bytes(); remaining > 0;) {
    const std::uint64_t piece = std::min(to.contiguous(), from.contiguous());
    if (past_cache) {
      copy_past_cache(target + to.position(), source + from.position(), piece);
    } else {
      std::memcpy(target + to.position(), source + from.position(), piece);
    }
    to.advance(piece);
    from.advance(piece);
    remaining -= piece;
  }
  if (past_cache) end_past_cache();
}

}  // namespace weir::rt
