// The parts of a built-in kernel.
#pragma once

#include <exception>

#include <weir/kernel.h>

#include "base/error.hpp"

namespace weir::kernels {

/// A kernel and its variant for the whole place: the same code with a team or without.
struct BuiltinKernel {
  const char* name;  ///< of the serial one; the other has the suffix ".team"
  weir_host_function function;
  weir_cost_function cost;
};

/// Runs the body of a kernel and fails the action when it throws.
template <auto kBody>
weir_status run_kernel(const weir_call* call) {
  try {
    kBody(*call);
    return WEIR_STATUS_OK;
  } catch (const rt::Error& error) {
    return weir_call_fail(call, error.status(), "%s", error.what());
  }
}

/// Returns the cost of a call; nothing for a call whose arguments are wrong: it will fail.
template <auto kCost>
weir_cost cost_of(const weir_call* call) {
  try {
    return kCost(*call);
  } catch (const std::exception&) {
    return {0, 0};
  }
}

}  // namespace weir::kernels
