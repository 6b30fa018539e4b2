// Kernels for devices that run no code of the host.
#pragma once

#include "suite.hpp"

namespace weir::conformance {

/// What the dialect has no words for, in the words of one kind of device.
struct DeviceWords {
  const char* kind;           ///< of the device
  weir_host_function gather;  ///< Kernels::gather, which enqueues its work itself
  const char* meet;           ///< text of a kernel suite_meet for Kernels::meet
  const char* meet_name;      ///< of that text
  weir_host_function held;    ///< Kernels::held, which enqueues its wait; nullptr: it has none
};

Kernels device_code(const Runtime& runtime, const DeviceWords& words);

}  // namespace weir::conformance
