// Dependences for the trace, including those that the engine does not track.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <weir/stream.h>

#include "core/dependence.hpp"

namespace weir::rt {

/// The dependences of each new action of a stream on earlier actions, complete or not.
class History {
 public:
  explicit History(weir_dependence_policy policy) : policy_(policy) {}

  /// Returns the ids of the actions that `action`, the next of its stream, depends on; none for one
  /// that orders the stream, see last_ended(). Valid until the next call. Throws std::bad_alloc.
  std::span<const std::uint64_t> note(const Action& action);
  /// Records that an action has completed. The next action that orders the stream depends on the
  /// last one.
  void note_end(const Action& action) noexcept { last_ended_ = action.id(); }
  std::uint64_t last_ended() const noexcept { return last_ended_; }

 private:
  /// Omits readers further back than this.
  static constexpr std::uint64_t kReach = 4096;

  const weir_dependence_policy policy_;
  DependenceTable table_;
  std::vector<std::uint64_t> found_;
  std::uint64_t previous_ = 0;
  std::uint64_t barrier_ = 0;
  std::uint64_t last_ended_ = 0;
};

}  // namespace weir::rt
