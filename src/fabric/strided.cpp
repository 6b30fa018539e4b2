#include "fabric/strided.hpp"

#include <cstring>

namespace weir::rt {

namespace {

/// Number of lines to prefetch ahead if each row is on its own cache line.
constexpr std::ptrdiff_t kFetchedAhead = 24;

/// Copies rows of a size known at compile time: one cell or a few.
template <std::size_t bytes>
void copy_short_rows(const std::byte* from, std::ptrdiff_t from_row, std::byte* to,
                     std::ptrdiff_t to_row, std::size_t rows) noexcept {
  for (std::size_t i = 0; i < rows; ++i) {
    __builtin_prefetch(from + kFetchedAhead * from_row);
    __builtin_prefetch(to + kFetchedAhead * to_row, 1);
    std::memcpy(to, from, bytes);
    from += from_row;
    to += to_row;
  }
}

void copy_rows(const std::byte* from, std::ptrdiff_t from_row, std::byte* to, std::ptrdiff_t to_row,
               std::size_t row_bytes, std::size_t rows) noexcept {
  switch (row_bytes) {
    case 1: return copy_short_rows<1>(from, from_row, to, to_row, rows);
    case 2: return copy_short_rows<2>(from, from_row, to, to_row, rows);
    case 4: return copy_short_rows<4>(from, from_row, to, to_row, rows);
    case 8: return copy_short_rows<8>(from, from_row, to, to_row, rows);
    case 12: return copy_short_rows<12>(from, from_row, to, to_row, rows);
    case 16: return copy_short_rows<16>(from, from_row, to, to_row, rows);
    case 24: return copy_short_rows<24>(from, from_row, to, to_row, rows);
    case 32: return copy_short_rows<32>(from, from_row, to, to_row, rows);
    case 40: return copy_short_rows<40>(from, from_row, to, to_row, rows);
    case 48: return copy_short_rows<48>(from, from_row, to, to_row, rows);
    case 64: return copy_short_rows<64>(from, from_row, to, to_row, rows);
    default:
      for (std::size_t i = 0; i < rows; ++i, from += from_row, to += to_row) {
        __builtin_prefetch(to + kFetchedAhead * to_row, 1);
        std::memcpy(to, from, row_bytes);
      }
  }
}

void copy_planes(const std::byte* from, std::ptrdiff_t from_row, std::ptrdiff_t from_plane,
                 std::byte* to, std::ptrdiff_t to_row, std::ptrdiff_t to_plane,
                 const Strided& extent) noexcept {
  for (std::size_t z = 0; z < extent.planes; ++z, from += from_plane, to += to_plane) {
    copy_rows(from, from_row, to, to_row, extent.row_bytes, extent.rows);
  }
}

}  // namespace

Strided joined(Strided box) noexcept {
  if (box.rows == 1) {
    box.rows = box.planes;
    box.row = box.plane;
    box.planes = 1;
  }
  if (box.planes > 1 && box.plane == static_cast<std::ptrdiff_t>(box.rows) * box.row) {
    box.rows *= box.planes;
    box.planes = 1;
  }
  if (box.rows > 1 && box.row == static_cast<std::ptrdiff_t>(box.row_bytes)) {
    box.row_bytes *= box.rows;
    box.rows = box.planes;
    box.row = box.plane;
    box.planes = 1;
  }
  return box;
}

void pack(const Strided& given, std::byte* to) noexcept {
  const Strided box = joined(given);
  const auto row = static_cast<std::ptrdiff_t>(box.row_bytes);
  copy_planes(box.first, box.row, box.plane, to, row, row * static_cast<std::ptrdiff_t>(box.rows),
              box);
}

void unpack(const std::byte* from, const Strided& given) noexcept {
  const Strided box = joined(given);
  const auto row = static_cast<std::ptrdiff_t>(box.row_bytes);
  copy_planes(from, row, row * static_cast<std::ptrdiff_t>(box.rows), box.first, box.row, box.plane,
              box);
}

void copy(const Strided& from, const Strided& to) noexcept {
  copy_planes(from.first, from.row, from.plane, to.first, to.row, to.plane, from);
}

}  // namespace weir::rt
