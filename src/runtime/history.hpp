// Dependences for the trace, complete also where the engine has no need to know them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <weir/stream.h>

#include "core/dependence.hpp"

namespace weir::rt {

/// What earlier actions of one stream each new one depends on, whether they are over or not.
class History {
 public:
  explicit History(weir_dependence_policy policy) : policy_(policy) {}

  /// Returns the ids that the action, next in its stream, depends on; none for one that orders the
  /// stream, see last_ended(). Valid until the next call.
  /// Throws std::bad_alloc.
  std::span<const std::uint64_t> note(const Action& action);
  /// Notes that an action is over. What orders the stream depends on the last of these.
  void note_end(const Action& action) noexcept { last_ended_ = action.id(); }
  std::uint64_t last_ended() const noexcept { return last_ended_; }

 private:
  /// Readers that are further back are not shown.
  static constexpr std::uint64_t kReach = 4096;

  const weir_dependence_policy policy_;
  DependenceTable table_;
  std::vector<std::uint64_t> found_;
  std::uint64_t previous_ = 0;
  std::uint64_t barrier_ = 0;
  std::uint64_t last_ended_ = 0;
};

}  // namespace weir::rt
