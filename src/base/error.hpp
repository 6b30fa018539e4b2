// Errors on the caller's thread: one exception, one code, one line.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <weir/status.h>

namespace weir::rt {

/// Thrown where the failure is detected; only the C guard translates it to a status.
class Error final : public std::exception {
 public:
  Error(weir_status status, std::string message) : status_(status), message_(std::move(message)) {}

  weir_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  weir_status status_;
  std::string message_;
};

/// Throws an Error with a formatted message: lower case, one line, the wrong value, its limit, what
/// to do.
template <class... Args>
[[noreturn, gnu::cold]] void fail(weir_status status, fmt::format_string<Args...> format,
                                  Args&&... args) {
  throw Error(status, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn, gnu::cold]] void fail_argument(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(WEIR_STATUS_INVALID_ARGUMENT, fmt::format(format, std::forward<Args>(args)...));
}

/// The result of work on a thread that must not throw. An OK outcome allocates no memory.
struct Outcome {
  weir_status status = WEIR_STATUS_OK;
  std::string message;

  bool ok() const noexcept { return status == WEIR_STATUS_OK; }
};

/// Creates an outcome with a message, or with a shorter one when there is no memory for it.
Outcome failed_outcome(weir_status status, const char* message) noexcept;

/// Turns the exception being handled into an outcome. Call it inside a catch block only. Without
/// memory for the message it is "out of memory", which a std::string holds without allocation.
Outcome current_exception_outcome(weir_status status_of_foreign) noexcept;

/// Returns the lower-case name of a status.
const char* status_name(weir_status status) noexcept;

}  // namespace weir::rt
