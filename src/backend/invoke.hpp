// Calls kernels and contains their failures.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.hpp"

namespace weir::rt {

/// Calls kernels one after the other on the thread that makes it. Callers on one thread are nested.
class KernelCaller {
 public:
  KernelCaller() noexcept;
  KernelCaller(const KernelCaller&) = delete;
  KernelCaller& operator=(const KernelCaller&) = delete;
  ~KernelCaller();

  /// Contract of call_kernel().
  bool call(weir_host_function function, const weir_call& call, Outcome& failure) noexcept {
    if (message_) [[unlikely]]
      message_.reset();  // of a call that succeeded all the same
    try {
      const weir_status status = function(&call);
      if (status == WEIR_STATUS_OK) [[likely]]
        return true;
      failure = failed(status);
    } catch (...) {
      failure = thrown();
    }
    return false;
  }

 private:
  Outcome failed(weir_status status) noexcept;
  Outcome thrown() noexcept;

  std::optional<std::string> message_;       ///< of weir_call_fail(), of the current call
  std::optional<std::string>* const outer_;  ///< of the next outer caller
};

/// Calls a kernel. Returns whether it succeeded; otherwise sets `failure` from its status, its
/// weir_call_fail() message or its exception.
bool call_kernel(weir_host_function function, const weir_call& call, Outcome& failure) noexcept;

/// Calls the kernel of a job and returns the outcome.
Outcome invoke(const Job& job) noexcept;

/// Implements weir_call_fail(): stores the message for the call that this thread runs.
void set_call_failure(std::string message) noexcept;

}  // namespace weir::rt
