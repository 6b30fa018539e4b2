// The only code that turns errors into statuses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <weir/status.h>

#include "base/error.hpp"
#include "stream/waiting.hpp"

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

/// Throws Error unless some version of a struct may have the size. A size that is not a multiple of
/// the alignment would end inside a pointer.
template <class Struct>
void check_struct_size(std::size_t size, const char* name) {
  if (size < sizeof(std::size_t) || size > 16 * sizeof(Struct) || size % alignof(Struct) != 0) {
    fail_struct_size(name, size);
  }
}

/// Returns an options struct of this version: fields that the caller's version does not have keep
/// their defaults. `given` may be null where `defaults` will do.
template <class Options>
Options read_options(const Options* given, const Options& defaults, const char* name) {
  Options options = defaults;
  if (given == nullptr) return options;
  check_struct_size<Options>(given->struct_size, name);
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  options.struct_size = sizeof options;
  return options;
}

/// Returns the caller's struct when it is of this version, `copy` otherwise.
template <class Options>
const Options& current(const Options* given, Options& copy, const char* name) {
  const Options& known = out(const_cast<Options*>(given), name);
  if (known.struct_size == sizeof(Options)) [[likely]]
    return known;
  return copy = read_options(given, copy, name);
}

/// Fills a struct of the caller as far as the caller's version knows it.
template <class Info>
void write_info(Info* target, const Info& info, const char* name) {
  Info& given = out(target, name);
  check_struct_size<Info>(given.struct_size, name);
  const std::size_t size = given.struct_size;
  std::memcpy(&given, &info, std::min(size, sizeof info));
  given.struct_size = size;
}

}  // namespace weir::rt::capi
