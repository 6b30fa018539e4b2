// The weir domains that a program gets as its host and its devices.
#pragma once

#include <weir/weir.hpp>

#include "hstreams/environment.hpp"

namespace weir::hs {

/// Opens the domains. Throws Error{DEVICE_NOT_INITIALIZED}.
weir::Runtime open_machine(const Environment& environment);

}  // namespace weir::hs
