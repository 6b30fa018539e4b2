#include "backend/invoke.hpp"

#include <utility>

#include <fmt/format.h>

namespace weir::rt {

namespace {

thread_local std::string call_failure;
constinit thread_local bool has_call_failure = false;

/// Returns the status of a failed call: what only the runtime may say counts as a kernel error.
weir_status believed(weir_status status) noexcept {
  const bool known = status > WEIR_STATUS_OK && status <= WEIR_STATUS_NETWORK_ERROR;
  const bool runtimes = status == WEIR_STATUS_CANCELLED || status == WEIR_STATUS_POISONED ||
                        status == WEIR_STATUS_TIMEOUT;
  return known && !runtimes ? status : WEIR_STATUS_KERNEL_ERROR;
}

[[gnu::cold]] Outcome failed(weir_status status) noexcept {
  try {
    std::string message = has_call_failure
                              ? std::exchange(call_failure, {})
                              : fmt::format("the kernel returned {}", status_name(status));
    return {believed(status), std::move(message)};
  } catch (...) {
    return {believed(status), {}};
  }
}

}  // namespace

Outcome invoke(const Job& job) noexcept {
  has_call_failure = false;
  try {
    const weir_status status = job.function(&job.call);
    if (status == WEIR_STATUS_OK) [[likely]]
      return {};
    return failed(status);
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
  }
}

void set_call_failure(std::string message) noexcept {
  call_failure = std::move(message);
  has_call_failure = true;
}

}  // namespace weir::rt
