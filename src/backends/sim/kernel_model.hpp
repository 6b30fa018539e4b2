// How long a kernel takes on a simulated device.
#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "backends/sim/sim_model.hpp"

namespace weir::rt {

/// The modelled cost of a kernel: it is launched, then it computes and moves bytes at the same
/// time.
struct KernelWork {
  std::int64_t launch_ns = 0;
  double compute_s = 0;  ///< where memory does not limit it, at normal speed
  double bytes = 0;      ///< 0: memory does not limit it
};

/// Returns the cost of a job on a number of hardware threads of the device. `measured_s` is how
/// long the call took on one core of the host: the cost of a kernel without cost function.
///
/// With t cores' worth of threads, a kernel of F operations computes for
///
///     F / (t gflops e) (1 + tile_loss sqrt(t) s)
///
/// where e is the share of the rate that its kind reaches (`syrk`, `trsm`, `potrf`; otherwise 1)
/// and s is the mean of the reciprocal extents of its matrices. For C = A B this is (1/m + 1/n +
/// 1/k) / 3: the surface of the product over its volume, as each core loses time at the edges of
/// its part, and the parts get smaller with sqrt(t). Factorisations lose four times as much. Only
/// built-in tile kernels have s and kinds.
///
/// Throws what the cost function throws.
KernelWork work_of(const SimModel& model, const Job& job, double threads, double measured_s);

}  // namespace weir::rt
