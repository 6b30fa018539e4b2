// The kernels of the acoustic applications.
#pragma once

#include <weir/weir.hpp>

namespace weir::apps {

/// The portable kernels of stencil.wk, with native code for the step on host cores. T is float or
/// double.
template <class T>
struct WaveKernels {
  explicit WaveKernels(const weir::Runtime& runtime);

  weir::Kernel set, copy;
  weir::Kernel step;         ///< (n, row, plane, first): next read-write; now, speed, kept read
  weir::Kernel add_scaled;   ///< (a, count): y read-write; x read
  weir::Kernel add_product;  ///< (count): sum read-write; x, y read

  /// Floating-point operations for a cell and step.
  static constexpr double step_operations = 36;
};

extern template struct WaveKernels<float>;
extern template struct WaveKernels<double>;

}  // namespace weir::apps
