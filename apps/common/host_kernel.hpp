// Kernels of applications for host cores.
#pragma once

#include <weir/weir.hpp>

namespace weir::apps {

/// Registers a serial kernel for host cores with its cost. Throws weir::Error when the name is
/// taken.
inline weir::Kernel register_kernel(const weir::Runtime& runtime, const char* name,
                                    weir_host_function code, weir_cost_function cost) {
  const weir_implementation implementation = {"host", code, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = &implementation;
  options.implementation_count = 1;
  options.cost = cost;
  weir_kernel* made = nullptr;
  weir::check(weir_kernel_register(runtime.handle(), &options, &made));
  return weir::Kernel(made);
}

}  // namespace weir::apps
