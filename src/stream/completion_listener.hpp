// Objects that are notified when an event is complete.
#pragma once

#include <cstdint>
#include <string>

#include "base/threads.hpp"
#include "core/event.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// Is notified once, on the completing thread, and is then destroyed. Needs no memory after its
/// construction: Context::listen().
class CompletionListener : public Waiter {
 public:
  /// Is counted while it exists: Context::listeners().
  explicit CompletionListener(sys::Atomic<std::uint64_t>& listeners) noexcept;
  CompletionListener(const CompletionListener&) = delete;
  CompletionListener& operator=(const CompletionListener&) = delete;
  virtual ~CompletionListener();

  /// `failure` is null if the status is OK, and may be otherwise. Must not wait.
  virtual void completed(weir_status status, const FailureRef& failure) noexcept = 0;

 private:
  static void run(Waiter& self, weir_status status, const FailureRef& failure);

  sys::Atomic<std::uint64_t>& listeners_;
};

/// Returns the description of a failure, stored in `room`; without memory the message of the root
/// action, without a failure the name of the status.
const char* describe(weir_status status, const FailureRef& failure, std::string& room) noexcept;

}  // namespace weir::rt
