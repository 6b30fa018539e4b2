// A kernel that keeps a core busy for a given time.
#pragma once

#include <weir/weir.hpp>

#include "common/program.hpp"

namespace weir_bench {

/// Registers the kernel "spin": scalar 0 is the time in microseconds.
inline weir::Kernel spin_kernel(const weir::Runtime& runtime) {
  return runtime.kernel("spin", [](weir::Call& call) {
    const double end = now() + call.scalar<double>(0) * 1e-6;
    while (now() < end) {
    }
  });
}

}  // namespace weir_bench
