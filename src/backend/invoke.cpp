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

}  // namespace

KernelCaller::KernelCaller() noexcept : outer_(std::exchange(call_failure, &message_)) {}

KernelCaller::~KernelCaller() { call_failure = outer_; }

[[gnu::cold]] Outcome KernelCaller::failed(weir_status status) noexcept {
  std::optional<std::string> message = std::exchange(message_, {});
  try {
    if (!message) message = fmt::format("the kernel returned {}", status_name(status));
    return {believed(status), std::move(*message)};
  } catch (...) {
    return {believed(status), "kernel failed"};  // needs no allocation
  }
}

[[gnu::cold]] Outcome KernelCaller::thrown() noexcept {
  message_.reset();
  return current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
}

bool call_kernel(weir_host_function function, const weir_call& call, Outcome& failure) noexcept {
  KernelCaller caller;
  return caller.call(function, call, failure);
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
