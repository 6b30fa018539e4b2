// Validated regions, and an exact overlap test.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/region.h>

namespace weir::rt {

/// A validated region of a buffer: planes of rows of contiguous bytes.
struct Region {
  std::uint64_t offset = 0;
  std::uint64_t row = 0;           ///< bytes, > 0
  std::uint64_t row_stride = 0;    ///< 0 when rows == 1
  std::uint64_t plane_stride = 0;  ///< 0 when planes == 1
  std::uint32_t rows = 1;
  std::uint16_t planes = 1;

  /// Bytes from the first byte of a plane to the end of its last row.
  std::uint64_t plane_span() const noexcept { return (rows - 1u) * row_stride + row; }
  /// Offset after the last byte.
  std::uint64_t end() const noexcept {
    return offset + (planes - 1u) * plane_stride + plane_span();
  }
  /// Bytes that belong to the region.
  std::uint64_t bytes() const noexcept { return row * rows * planes; }
  bool contiguous() const noexcept { return rows == 1 && planes == 1; }

  bool operator==(const Region&) const noexcept = default;
};

/// The general case of make_region().
Region check_region(const weir_region& region, std::uint64_t bytes, const char* buffer);

/// Checks a public region against a buffer of `bytes` bytes. Unused strides become 0. Throws Error
/// naming `buffer` and the limit that is broken.
inline Region make_region(const weir_region& region, std::uint64_t bytes, const char* buffer) {
  const auto& [row, rows, planes] = region.extent;
  if (rows <= 1 && planes <= 1 && row > 0 && region.offset <= bytes && row <= bytes - region.offset)
      [[likely]] {
    return {.offset = region.offset, .row = row};
  }
  return check_region(region, bytes, buffer);
}

/// Returns a region at the start of a buffer, of the same extent, without gaps between its rows.
weir_region packed(const Region& region) noexcept;

/// Returns whether a region is `inner` or one contiguous range that holds all of it.
bool contains(const Region& outer, const Region& inner) noexcept;
/// Returns whether the two regions have a byte in common. Exact, also for different strides.
bool overlap(const Region& a, const Region& b) noexcept;

}  // namespace weir::rt
