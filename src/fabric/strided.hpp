// Boxes of bytes in memory, and fast copies of boxes of any shape.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::rt {

/// Planes of rows of contiguous bytes in memory.
struct Strided {
  std::byte* first = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 1, planes = 1;
  std::ptrdiff_t row = 0, plane = 0;  ///< bytes from one row, or plane, to the next

  std::size_t bytes() const noexcept { return row_bytes * rows * planes; }
  bool contiguous() const noexcept { return rows == 1 && planes == 1; }
};

/// Returns the same bytes in the same order, with adjacent rows joined.
Strided joined(Strided box) noexcept;

/// Copies a box to contiguous memory, row after row.
void pack(const Strided& box, std::byte* to) noexcept;
/// Copies contiguous memory to a box.
void unpack(const std::byte* from, const Strided& box) noexcept;
/// Copies a box to another one of the same extent. The boxes must not overlap.
void copy(const Strided& from, const Strided& to) noexcept;

}  // namespace weir::rt
