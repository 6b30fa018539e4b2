#include "backend/invoke.hpp"

#include <utility>

#include <fmt/format.h>

namespace weir::rt {

namespace {

thread_local std::string call_failure;

[[gnu::cold]] Outcome failed(weir_status status) noexcept {
  try {
    std::string message = std::exchange(call_failure, {});
    if (message.empty()) message = fmt::format("the kernel returned {}", status_name(status));
    return {status, std::move(message)};
  } catch (...) {
    return {status, {}};
  }
}

}  // namespace

Outcome invoke(const Job& job) noexcept {
  try {
    const weir_status status = job.function(&job.call);
    if (status == WEIR_STATUS_OK) [[likely]]
      return {};
    return failed(status);
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
  }
}

void set_call_failure(std::string message) noexcept { call_failure = std::move(message); }

}  // namespace weir::rt
