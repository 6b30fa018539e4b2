// Plain data that threads hand to each other.
//
// tests/relacy puts a header of this name in front of it, which finds races on the data and makes
// rings and chunks so small that every way round them is tried.
#pragma once

namespace weir::rt::sys {

/// Data that is not atomic and passes from thread to thread.
template <class T>
using Plain = T;

/// A size or a number of tries: the first; `tiny` where all interleavings are searched.
template <class T>
constexpr T scaled(T size, [[maybe_unused]] T tiny) noexcept {
  return size;
}

}  // namespace weir::rt::sys
