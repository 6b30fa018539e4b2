// Calling a kernel so that nothing it does gets out.
#pragma once

#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// Calls job.function and turns its status, its weir_call_fail() message or its exception into an
/// outcome.
Outcome invoke(const Job& job) noexcept;

/// What weir_call_fail() does: keeps the message for the invoke() this thread is in.
void set_call_failure(std::string message) noexcept;

}  // namespace weir::rt
