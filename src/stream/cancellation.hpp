// Which actions of a stream are cancelled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/threads.hpp"
#include "core/action.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// The task number up to which calls of a queue are cancelled, checked when a call becomes ready.
/// Copies run, and the order stays. All places of a queue share one watermark: otherwise a
/// successor of a cancelled task could run on another place.
struct CancellationWatermark {
  /// Calls up to this number are cancelled; null: none.
  const sys::Atomic<std::uint64_t>* until = nullptr;
  bool by_task = false;  ///< counts tasks instead of actions

  bool covers(const Action& action) const noexcept {
    if (until == nullptr || action.kind != ActionKind::compute) return false;
    return (by_task ? action.record().task : action.sequence()) <= until->load();
  }
};

/// Asks the owner of a stream to cancel the actions up to a sequence number.
struct CancelMessage : Message {
  std::uint64_t until = 0;
  FailureRef reason;
};

/// What was cancelled in a stream. The owner uses it, except for the watermark, which is set before
/// anything is enqueued.
class Cancellation {
 public:
  void set_watermark(const CancellationWatermark& watermark) noexcept { watermark_ = watermark; }
  /// Cancels the actions up to the message's number, now and later.
  void note(const CancelMessage& message) noexcept {
    reason_ = message.reason;
    until_ = std::max(until_, message.until);
  }

  /// Whether a message has cancelled the action, which is about to be admitted.
  bool before_admission(const Action& action) const noexcept {
    return action.sequence() <= until_ && action.kind != ActionKind::drain;
  }
  bool below_watermark(const Action& action) const noexcept { return watermark_.covers(action); }
  /// Whether the action was cancelled while it waited for memory; the engine counts it as started.
  bool covers(const Action& action) const noexcept {
    return action.sequence() <= until_ || below_watermark(action);
  }
  /// The failure of cancelled actions; empty until a message or set_reason() sets it.
  const FailureRef& reason() const noexcept { return reason_; }
  void set_reason(FailureRef reason) noexcept { reason_ = std::move(reason); }

 private:
  CancellationWatermark watermark_;
  std::uint64_t until_ = 0;
  FailureRef reason_;
};

}  // namespace weir::rt
