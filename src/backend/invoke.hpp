// Calls kernels and contains their failures.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// Calls a kernel. Returns whether it succeeded; otherwise sets `failure` from its status, its
/// weir_call_fail() message or its exception.
bool call_kernel(weir_host_function function, const weir_call& call, Outcome& failure) noexcept;

/// Calls the kernel of a job and returns the outcome.
Outcome invoke(const Job& job) noexcept;

/// Implements weir_call_fail(): stores the message for the call that this thread runs.
void set_call_failure(std::string message) noexcept;

}  // namespace weir::rt
