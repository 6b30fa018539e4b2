#include "capi/guard.hpp"

#include "base/text.hpp"

namespace weir::rt::capi {

namespace {

std::string& last_error() noexcept {
  thread_local std::string message;
  return message;
}

}  // namespace

weir_status report(weir_status status, const std::string& message) noexcept {
  try {
    last_error() = one_line(message);
  } catch (...) {
    last_error().clear();
  }
  return status;
}

weir_status report_exception() noexcept {
  const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
  return report(outcome.status, outcome.message);
}

weir_status report_wait(const WaitResult& result) {
  if (result.status == WEIR_STATUS_OK) return result.status;
  if (result.failure) {
    return report(result.status, result.failure->describe(result.status == WEIR_STATUS_POISONED));
  }
  if (result.status == WEIR_STATUS_TIMEOUT) {
    return report(result.status, "the deadline passed before the wait was over");
  }
  return report(result.status, status_name(result.status));
}

void fail_struct_size(const char* name, std::size_t size) {
  fail_argument("struct_size {} of {} is wrong: initialise it with its _INIT macro", size, name);
}

}  // namespace weir::rt::capi

extern "C" {

const char* weir_last_error(void) { return weir::rt::capi::last_error().c_str(); }

const char* weir_status_name(weir_status status) { return weir::rt::status_name(status); }
}
