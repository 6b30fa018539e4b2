#include "base/error.hpp"

#include <array>
#include <new>

namespace weir::rt {

Outcome failed_outcome(weir_status status, const char* message) noexcept {
  try {
    return {status, message};
  } catch (...) {
    return {status, status == WEIR_STATUS_OUT_OF_MEMORY ? "out of memory" : "failed"};
  }
}

Outcome current_exception_outcome(weir_status status_of_foreign) noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return {error.status(), error.what()};
    } catch (const std::bad_alloc&) {
      return {WEIR_STATUS_OUT_OF_MEMORY, "out of memory"};
    } catch (const std::exception& error) {
      return {status_of_foreign, error.what()};
    } catch (...) {
      return {status_of_foreign, "unknown exception"};
    }
  } catch (...) {
    return {WEIR_STATUS_OUT_OF_MEMORY, "out of memory"};
  }
}

const char* status_name(weir_status status) noexcept {
  static constexpr std::array names = {"ok",
                                       "invalid_argument",
                                       "not_found",
                                       "unsupported",
                                       "unavailable",
                                       "out_of_memory",
                                       "busy",
                                       "timeout",
                                       "cancelled",
                                       "poisoned",
                                       "kernel_error",
                                       "device_error",
                                       "network_error",
                                       "internal"};
  const auto index = static_cast<unsigned>(status);
  return index < names.size() ? names[index] : "unknown";
}

}  // namespace weir::rt
