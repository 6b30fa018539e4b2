#include "backend/invoke.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace weir::rt {

namespace {

/// Where weir_call_fail() stores the message of this thread's current call.
constinit thread_local std::optional<std::string>* call_failure = nullptr;

/// Returns the status of a failed call: a status that is reserved for the runtime counts as a
/// kernel error.
weir_status believed(weir_status status) noexcept {
  const bool known = status > WEIR_STATUS_OK && status <= WEIR_STATUS_NETWORK_ERROR;
  const bool runtimes = status == WEIR_STATUS_CANCELLED || status == WEIR_STATUS_POISONED ||
                        status == WEIR_STATUS_TIMEOUT;
  return known && !runtimes ? status : WEIR_STATUS_KERNEL_ERROR;
}

[[gnu::cold]] Outcome failed(weir_status status, std::optional<std::string>& message) noexcept {
  try {
    if (!message) message = fmt::format("the kernel returned {}", status_name(status));
    return {believed(status), std::move(*message)};
  } catch (...) {
    return {believed(status), "kernel failed"};  // needs no allocation
  }
}

}  // namespace

bool call_kernel(weir_host_function function, const weir_call& call, Outcome& failure) noexcept {
  std::optional<std::string> message;
  std::optional<std::string>* const outer = std::exchange(call_failure, &message);
  weir_status status = WEIR_STATUS_OK;
  try {
    status = function(&call);
    if (status != WEIR_STATUS_OK) [[unlikely]]
      failure = failed(status, message);
  } catch (...) {
    failure = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    status = failure.status;
  }
  call_failure = outer;  // a kernel may call others: launches of graphs do
  return status == WEIR_STATUS_OK;
}

Outcome invoke(const Job& job) noexcept {
  Outcome outcome;
  call_kernel(job.function, job.call, outcome);
  return outcome;
}

void set_call_failure(std::string message) noexcept {
  if (call_failure != nullptr) *call_failure = std::move(message);
}

}  // namespace weir::rt
