// The arguments of the kernels that fill and copy memory, checked: the same for every kind of code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include <weir/kernel.h>

#include "base/error.hpp"
#include "base/region.hpp"
#include "kernels/call_arguments.hpp"

namespace weir::kernels {

/// Fills X with one byte. The constructors throw rt::Error{invalid_argument}.
struct SetCall {
  explicit SetCall(const weir_call& call) {
    const CallArguments arguments(call, "byte", "X");
    const std::int64_t given = arguments.integer(0);
    if (given < 0 || given > 255) {
      rt::fail_argument("scalar 1 (byte) is {}: expected 0 to 255", given);
    }
    byte = static_cast<unsigned char>(given);
    x = arguments.view(0, WEIR_ACCESS_WRITE);
  }

  unsigned char byte;
  weir_view x;
};

/// Returns whether two operands have a byte in common.
inline bool overlap(const weir_view& a, const weir_view& b) {
  const auto start_of = [](const weir_view& view) {
    return reinterpret_cast<std::uintptr_t>(view.address);
  };
  const std::uintptr_t begin = std::min(start_of(a), start_of(b));
  const auto region_of = [&](const weir_view& view) {
    return rt::Region{.offset = start_of(view) - begin,
                      .row = view.extent[0],
                      .row_stride = view.extent[1] > 1 ? view.stride[0] : 0,
                      .plane_stride = view.extent[2] > 1 ? view.stride[1] : 0,
                      .rows = static_cast<std::uint32_t>(view.extent[1]),
                      .planes = static_cast<std::uint16_t>(view.extent[2])};
  };
  return rt::overlap(region_of(a), region_of(b));
}

/// Copies X to Y in pieces of any order; X and Y have no byte in common.
struct CopyCall {
  explicit CopyCall(const weir_call& call) {
    const CallArguments arguments(call, "", "X, Y");
    x = arguments.view(0, WEIR_ACCESS_READ);
    y = arguments.view(1, WEIR_ACCESS_WRITE);
    if (!std::equal(std::begin(x.extent), std::end(x.extent), std::begin(y.extent))) {
      rt::fail_argument(
          "operand 1 (X) is {} x {} x {} bytes and operand 2 (Y) {} x {} x {}: expected the same "
          "shape",
          x.extent[0], x.extent[1], x.extent[2], y.extent[0], y.extent[1], y.extent[2]);
    }
    if (overlap(x, y)) {
      rt::fail_argument("operands 1 (X) and 2 (Y) overlap: copy by way of memory of its own");
    }
  }

  weir_view x, y;
};

}  // namespace weir::kernels
