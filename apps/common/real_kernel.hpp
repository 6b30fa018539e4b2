// Portable kernels whose text leaves the type of numbers open, as REAL.
#pragma once

#include <string>
#include <type_traits>

#include <weir/weir.hpp>

namespace weir::apps {

/// One text, compiled for the host twice: once with REAL as float, once as double.
struct RealKernel {
  const char* name;  ///< in the runtime
  const weir_portable_kernel &single, &twice;
  const char *text, *file;
};

/// Registers a kernel for numbers of T. Throws weir::Error when the name is taken.
template <class T, class Grid>
weir::Kernel register_kernel(const weir::Runtime& runtime, const RealKernel& kernel,
                             weir_kernel_shape shape, weir_cost_function cost, Grid grid) {
  constexpr bool single = std::is_same_v<T, float>;
  const std::string text =
      std::string("#define REAL ") + (single ? "float" : "double") + "\n#line 1\n" + kernel.text;
  return runtime.portable_kernel({.kernel = single ? &kernel.single : &kernel.twice,
                                  .source = text.c_str(),
                                  .source_name = kernel.file,
                                  .name = kernel.name,
                                  .shape = shape,
                                  .cost = cost},
                                 grid);
}

/// Elements of T of a contiguous operand.
template <class T>
std::size_t elements(const weir::Call& call, std::size_t operand) {
  return call.operand(operand).extent[0] / sizeof(T);
}

}  // namespace weir::apps
