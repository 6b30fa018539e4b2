// What records the actions of a stream while the program enqueues them.
#pragma once

#include <span>

#include <weir/kernel.h>

#include "core/action.hpp"

namespace weir::rt {

/// Records the actions of one stream. The thread that holds the producer lock of the stream calls
/// it; the functions throw Error, and the action is then not enqueued.
class ActionRecorder {
 public:
  virtual ~ActionRecorder() = default;
  /// Turns the parameters among the scalars of the next call into scalars of their plain types.
  virtual void take_parameters(std::span<weir_scalar> scalars) = 0;
  /// Records an action that is filled in. Returns whether it runs, too.
  virtual bool record(const Action& action) = 0;
};

}  // namespace weir::rt
