// Actions that the program starts and completes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/stream.h>

#include "base/error.hpp"
#include "core/action.hpp"
#include "stream/completion_listener.hpp"

namespace weir::rt {

class Context;

/// What an external action has in the place of scalars.
struct ExternalCall {
  static constexpr std::size_t kScalars = 2;
  enum class State : std::uint8_t { waits, in_progress, completed };

  weir_external_start start;
  void* payload;
  State state;  ///< guarded by the event of the action

  /// Requires room for kScalars.
  static void put_in(Action& action, const weir_external& external) noexcept;
  static ExternalCall& of(Action& action) noexcept;
  /// Changes the state of an action if it is in the slot and has the state `from`. Any thread.
  static bool change_state(Action& action, std::uint64_t id, State from, State to) noexcept;
};
static_assert(sizeof(ExternalCall) <= ExternalCall::kScalars * sizeof(weir_scalar));

/// Releases the payload when the action is complete.
class PayloadRelease final : public CompletionListener {
 public:
  PayloadRelease(sys::Atomic<std::uint64_t>& listeners, const weir_external& external) noexcept
      : CompletionListener(listeners), release_(external.release), payload_(external.payload) {}
  void completed(weir_status, const FailureRef&) noexcept override { release_(payload_); }

 private:
  void (*const release_)(void*);
  void* const payload_;
};

/// Calls the function of an action, on the thread of the owner. OK: the program completes the
/// action, or has done so; otherwise the caller does, with this outcome.
Outcome call_external(const Context& context, Action& action) noexcept;

}  // namespace weir::rt
