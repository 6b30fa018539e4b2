// The only place where errors become statuses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <weir/status.h>

#include "base/error.hpp"
#include "runtime/waiting.hpp"

namespace weir::rt::capi {

/// Keeps a message for weir_last_error() of this thread and returns the status.
weir_status report(weir_status status, std::string_view message) noexcept;
/// The same for the exception being handled.
weir_status report_exception() noexcept;

/// Runs the body of an entry point.
template <class Body>
weir_status guard(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return WEIR_STATUS_OK;
  } catch (...) {
    return report_exception();
  }
}

/// Returns the status of a wait, with its message.
weir_status report_wait(const WaitResult& result) noexcept;

/// Throws Error unless an out-parameter is given.
template <class T>
T& out(T* pointer, const char* name) {
  if (pointer == nullptr) fail_argument("{} is NULL", name);
  return *pointer;
}

[[noreturn]] void fail_struct_size(const char* name, std::size_t size);

/// Returns an options struct as this version knows it: fields that the caller's version does not
/// have keep their defaults. `given` may be null where `defaults` will do.
template <class Options>
Options read_options(const Options* given, const Options& defaults, const char* name) {
  Options options = defaults;
  if (given == nullptr) return options;
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > 16 * sizeof(Options)) {
    fail_struct_size(name, given->struct_size);
  }
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  options.struct_size = sizeof options;
  return options;
}

/// Fills a struct of the caller as far as the caller's version knows it.
template <class Info>
void write_info(Info* target, const Info& info, const char* name) {
  Info& given = out(target, name);
  if (given.struct_size < sizeof(std::size_t) || given.struct_size > 16 * sizeof(Info)) {
    fail_struct_size(name, given.struct_size);
  }
  const std::size_t size = given.struct_size;
  std::memcpy(&given, &info, std::min(size, sizeof info));
  given.struct_size = size;
}

}  // namespace weir::rt::capi
