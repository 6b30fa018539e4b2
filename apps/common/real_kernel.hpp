// Portable kernels whose text leaves the type of numbers open, as REAL.
//
//   #define KERNEL_FILE "dotproduct/dot.wk"
//   #include "common/real_kernels.inc"
//
// compiles the kernels of a file for the host in both precisions and for several instruction sets,
// and HOST_KERNELS(name) then names what became of one of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>

#include <weir/portable.h>
#include <weir/weir.hpp>

namespace weir::apps {

/// A kernel compiled for any processor, for AVX2 and for AVX-512.
using HostVariants = std::array<const weir_portable_kernel*, 3>;

/// Returns the one for this processor.
const weir_portable_kernel& best_for_host(const HostVariants& variants);

struct HostKernels {
  HostVariants single, twice;
};

#define HOST_KERNELS(name)                                                              \
  weir::apps::HostKernels {                                                             \
    {&any_processor::in_float::name, &avx2::in_float::name, &avx512::in_float::name}, { \
      &any_processor::in_double::name, &avx2::in_double::name, &avx512::in_double::name \
    }                                                                                   \
  }

struct RealKernel {
  const char* name;  ///< in the runtime
  HostKernels host;
  const char *text, *file;  ///< for other devices
};

/// Registers a kernel for numbers of T, with native code for host cores instead of the portable one
/// if there is any: its payload is the portable kernel. Throws weir::Error when the name is taken.
template <class T, class Grid>
weir::Kernel register_kernel(const weir::Runtime& runtime, const RealKernel& kernel,
                             weir_kernel_shape shape, weir_cost_function cost, Grid grid,
                             weir_host_function native = nullptr) {
  constexpr bool single = std::is_same_v<T, float>;
  const weir_portable_kernel& best = best_for_host(single ? kernel.host.single : kernel.host.twice);
  const weir_implementation implementation = {"host", native,
                                              const_cast<weir_portable_kernel*>(&best)};
  std::string text = single ? "#define REAL float\n#line 1\n" : "#define REAL double\n#line 1\n";
  text += kernel.text;
  return runtime.portable_kernel(
      {.kernel = &best,
       .source = text.c_str(),
       .source_name = kernel.file,
       .name = kernel.name,
       .shape = shape,
       .cost = cost,
       .implementations = {&implementation, native != nullptr ? 1u : 0u}},
      grid);
}

/// Elements of T of an operand of one or two dimensions.
template <class T>
std::size_t elements(const weir::Call& call, std::size_t operand) {
  const weir_view& view = call.operand(operand);
  return view.extent[0] / sizeof(T) * std::max<std::size_t>(view.extent[1], 1);
}

}  // namespace weir::apps
