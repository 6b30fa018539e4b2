// Records a stream's actions in a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <weir/stream.h>

#include "core/action.hpp"
#include "stream/history.hpp"

namespace weir::rt {

class Context;
class PlaceBase;

/// Records the actions of one stream while the recorder is on: their times, and the dependences
/// between them. Of the owner, except that the constructor adds the stream to the recorder.
class StreamTracer {
 public:
  StreamTracer(Context& context, const PlaceBase& place, const std::string& stream,
               weir_dependence_policy policy);

  /// Sets the time at which the action became ready, once.
  void note_ready(Action& action) const noexcept;
  /// Records what an action depends on, before it is admitted.
  void note_admission(const Action& action) noexcept;
  /// Records a completed action.
  void note_end(Action& action) noexcept;

 private:
  void note_order(const Action& action) noexcept;
  std::uint16_t cores_of(const Action& action) const noexcept;

  Context& context_;
  const PlaceBase& place_;
  const weir_dependence_policy policy_;
  const std::uint32_t index_;         ///< of the stream in the recorder
  std::unique_ptr<History> history_;  ///< from the first admission on
};

}  // namespace weir::rt
