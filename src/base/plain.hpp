// Data that is not atomic and that threads pass to each other.
//
// tests/relacy replaces this header by one of the same name that finds races on the data and makes
// rings and chunks so small that all interleavings are explored.
#pragma once

namespace weir::rt::sys {

/// Data that is not atomic and passes from thread to thread.
template <class T>
using Plain = T;

/// A size or a number of tries: returns the first; `tiny` where all interleavings are explored.
template <class T>
constexpr T scaled(T size, [[maybe_unused]] T tiny) noexcept {
  return size;
}

}  // namespace weir::rt::sys
