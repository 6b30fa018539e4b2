#include "capi/guard.hpp"

#include "base/text.hpp"

namespace weir::rt::capi {

namespace {

/// Longer messages are cut: setting a message must not allocate, not even a thread's first one.
constexpr std::size_t kMessageBytes = 2048;
constinit thread_local char last_error[kMessageBytes] = "";

}  // namespace

weir_status report(weir_status status, std::string_view message) noexcept {
  const std::size_t length = message.copy(last_error, kMessageBytes - 1);
  make_one_line({last_error, length});
  last_error[length] = '\0';
  return status;
}

weir_status report_exception() noexcept {
  const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
  return report(outcome.status, outcome.message);
}

weir_status report_wait(const WaitResult& result) noexcept {
  if (result.status == WEIR_STATUS_OK) return result.status;
  if (result.failure) {
    result.failure->mark_reported();
    try {
      return report(result.status, result.failure->describe(result.status == WEIR_STATUS_POISONED));
    } catch (...) {
      return report(result.status, result.failure->message);
    }
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

const char* weir_last_error(void) { return weir::rt::capi::last_error; }

const char* weir_status_name(weir_status status) { return weir::rt::status_name(status); }
}
