// The cause of an action's failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include <weir/status.h>

#include "base/plain.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The root cause shared by a failed or cancelled action and everything that it poisoned.
struct Failure {
  weir_status status;
  std::string message;  ///< message of the kernel, device or runtime
  std::string action;   ///< name of the root action
  std::string origin;   ///< stream and place of the root action
  /// Id of the root action. A poisoned action keeps the failure with the smallest one.
  sys::Plain<std::uint64_t> root_id = 0;
  sys::Atomic<std::uint32_t> references{1};
  mutable sys::Atomic<bool> reported{false};

  /// Marks the failure as reported to the program: by a wait, a synchronise, an event, a callback
  /// or the log.
  void mark_reported() const noexcept { reported.store(true, std::memory_order_relaxed); }

  /// Returns one line of text, for the root action or for an action that it poisoned.
  std::string describe(bool poisoned) const;
};

/// Shared ownership of a Failure; null means success. One pointer wide.
class FailureRef {
 public:
  FailureRef() noexcept = default;
  FailureRef(const FailureRef& other) noexcept : failure_(other.failure_) { retain(); }
  FailureRef(FailureRef&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  FailureRef& operator=(FailureRef other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  ~FailureRef() { release(); }

  /// Creates a failure; without memory it returns a preallocated "out of memory".
  static FailureRef make(weir_status status, std::string message, std::string action,
                         std::string origin, std::uint64_t root_id) noexcept;

  explicit operator bool() const noexcept { return failure_ != nullptr; }
  const Failure* operator->() const noexcept { return failure_; }
  const Failure* get() const noexcept { return failure_; }
  void reset() noexcept { *this = FailureRef(); }

  /// Keeps the failure with the earlier root action, so that the root does not depend on timing.
  void merge(const FailureRef& other) noexcept {
    if (other && (!failure_ || other->root_id < failure_->root_id)) *this = other;
  }

 private:
  explicit FailureRef(Failure* owned) noexcept : failure_(owned) {}
  void retain() noexcept {
    if (failure_) failure_->references.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (failure_ && failure_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete failure_;
    }
  }

  Failure* failure_ = nullptr;
};

}  // namespace weir::rt
