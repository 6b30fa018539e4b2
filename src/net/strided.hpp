// Boxes of bytes in memory, and copying them fast whatever their shape.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::rt {

/// Planes of rows of contiguous bytes in memory.
struct Strided {
  std::byte* first = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 1, planes = 1;
  std::ptrdiff_t row = 0, plane = 0;  ///< bytes from a row, a plane, to the next

  std::size_t bytes() const noexcept { return row_bytes * rows * planes; }
  bool contiguous() const noexcept { return rows == 1 && planes == 1; }
};

/// Returns the same bytes in the same order, with rows that touch each other joined.
Strided joined(Strided box) noexcept;

/// Copies a box to contiguous memory, row after row.
void pack(const Strided& box, std::byte* to) noexcept;
/// Copies contiguous memory to a box.
void unpack(const std::byte* from, const Strided& box) noexcept;
/// Copies a box to another of the same extent that has no byte in common with it.
void copy(const Strided& from, const Strided& to) noexcept;

}  // namespace weir::rt
