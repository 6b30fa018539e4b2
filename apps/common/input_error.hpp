// Errors in input of the user.
#pragma once

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace weir::apps {

/// Thrown for a file that cannot be used. The message is one line; the CLI ends with exit code 3.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws an InputError with a formatted message: where it is, what was found, what was expected.
template <class... Args>
[[noreturn, gnu::cold]] void fail_input(fmt::format_string<Args...> format, Args&&... args) {
  throw InputError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weir::apps
