// Calling a kernel so that nothing it does gets out.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// Calls a kernel. Returns whether it did its work; else its status, its weir_call_fail() message
/// or its exception becomes `failure`.
bool call_kernel(weir_host_function function, const weir_call& call, Outcome& failure) noexcept;

/// The same for the kernel of a job, as an outcome.
Outcome invoke(const Job& job) noexcept;

/// What weir_call_fail() does: keeps the message for the invoke() this thread is in.
void set_call_failure(std::string message) noexcept;

}  // namespace weir::rt
