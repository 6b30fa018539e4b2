// The arguments of the kernels that fill and copy memory, checked: the same for every kind of code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include <weir/kernel.h>

#include "base/error.hpp"
#include "kernels/call_arguments.hpp"

namespace weir::kernels {

/// X gets one byte everywhere. The constructors throw rt::Error{invalid_argument}.
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

/// Y gets what is in X.
struct CopyCall {
  explicit CopyCall(const weir_call& call) {
    const CallArguments arguments(call, "", "X, Y");
    x = arguments.view(0, WEIR_ACCESS_READ);
    y = arguments.view(1, WEIR_ACCESS_WRITE);
    if (std::equal(std::begin(x.extent), std::end(x.extent), std::begin(y.extent))) return;
    rt::fail_argument(
        "operand 1 (X) is {} x {} x {} bytes and operand 2 (Y) {} x {} x {}: expected the same "
        "shape",
        x.extent[0], x.extent[1], x.extent[2], y.extent[0], y.extent[1], y.extent[2]);
  }

  weir_view x, y;
};

}  // namespace weir::kernels
