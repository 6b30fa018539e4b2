// The dependence policy of one stream: what an action waits for, and which failures it inherits.
#pragma once

#include <cstdint>
#include <vector>

#include <weir/stream.h>

#include "core/action_lists.hpp"
#include "core/dependence.hpp"
#include "core/device_ordering.hpp"

namespace weir::rt {

/// The past of one stream, under its dependence policy: names the predecessors of the next action,
/// gives it the failures of earlier actions, and keeps those failures until a drain reports them.
///
/// An action is admitted by find_predecessors(), which may throw, and enter(), which may not. Each
/// action is passed to conclude() once, when it completes.
class DependencePolicy {
 public:
  struct Predecessor {
    Action* action;
    bool ignores_failure;
  };

  DependencePolicy(weir_dependence_policy policy, Ordering ordering) noexcept
      : policy_(policy), device_ordered_(ordering == Ordering::device) {}

  bool is_fifo() const noexcept { return policy_ == WEIR_DEPENDENCE_POLICY_FIFO; }
  /// Whether the action has no predecessors, but completes when it is the oldest of the window.
  bool waits_for_front(const Action& action) const noexcept {
    return orders_stream(action.kind) && !(device_ordered_ && action.kind == ActionKind::barrier);
  }
  /// Whether no earlier failure can reach a later action.
  bool has_no_failure() const noexcept { return !first_failure_ && !table_.poisoned(); }

  /// Finds the predecessors of an action among those in the window. Throws std::bad_alloc and then
  /// changes nothing.
  void find_predecessors(const Action& action, const ActionWindow& window);
  const std::vector<Predecessor>& predecessors() const noexcept { return predecessors_; }
  /// Enters the action last passed to find_predecessors(), and gives it the failures that it
  /// inherits from complete actions.
  void enter(Action& action) noexcept;
  /// Gives an action that is not entered, for want of memory, the failures that it would inherit
  /// after all earlier actions are complete.
  void inherit(Action& action) noexcept;

  /// Sets the final status of a complete action, and notes its failure for later actions. Returns
  /// whether later barriers that are admitted do not know a failure yet.
  bool conclude(Action& action) noexcept;

  /// Returns what poisons the successors of a complete action in addition to its own failure, null
  /// if nothing does: in FIFO order the failures of the actions before it, too, and behind a
  /// barrier those of earlier barriers.
  FailureRef failure_behind(const Action& action, bool ignores_failure) const noexcept;
  /// Returns the failure that an action inherits through its operands. Needs no memory.
  FailureRef failure_through_operands(const Action& action) const noexcept;

 private:
  bool tracks(const Action& action) const noexcept {
    return policy_ == WEIR_DEPENDENCE_POLICY_OPERANDS && action.status == WEIR_STATUS_OK;
  }
  void follow(Action* earlier, bool ignores_failure) {
    if (earlier != nullptr) predecessors_.push_back({earlier, ignores_failure});
  }
  void find_conflicts(const Action& action, const ActionWindow& window);
  bool note_failure(const Action& action) noexcept;
  void conclude_drain(Action& drain) noexcept;

  const weir_dependence_policy policy_;
  const bool device_ordered_;
  weir_status first_status_ = WEIR_STATUS_OK;
  FailureRef first_failure_;  ///< reported by the next drain
  std::uint64_t first_sequence_ = 0;
  FailureRef poison_all_;  ///< poisons every later action of the stream
  DependenceTable table_;
  std::uint64_t last_fifo_ = 0;     ///< sequence number of the predecessor of the next action
  std::uint64_t last_barrier_ = 0;  ///< sequence number of the last barrier under device ordering
  std::vector<Predecessor> predecessors_;  ///< of the action to be admitted
  FailureRef inherited_;                   ///< of the action to be admitted, through its operands
};

}  // namespace weir::rt
