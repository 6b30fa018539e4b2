// The engine of one stream: decides which action may run when.
#pragma once

#include <cassert>
#include <cstdint>

#include <weir/stream.h>

#include "core/action_lists.hpp"
#include "core/dependence_policy.hpp"
#include "core/device_ordering.hpp"

namespace weir::rt {

/// The dependence resolution of one stream: a pure state machine without threads, clocks or
/// devices. The owner of the stream drives it.
///
/// The owner admits actions in FIFO order. The engine hands each out to run exactly once, when all
/// its predecessors are complete, and takes it back through finish(). Each action completes exactly
/// once, with its final status: in finish(), if that returns true, or in the list of finished
/// actions.
///
/// With device ordering the engine hands out an action as soon as all its predecessors are
/// submitted to the device. The driver may return it before they complete; the engine completes it
/// after them. Host-ordered actions are neither submitted nor handed out early.
///
/// Example with device ordering, where B depends on A:
///
///     admit(A)               A is ready
///     pop_compute()          returns A
///     admit(B)               B waits for the submission of A
///     mark_submitted(A, 1)   B is ready
///     pop_compute()          returns B; each_awaited_submission(B) visits 1
///     mark_submitted(B, 2)
///     finish(B)              the driver has returned B first: B stays in the window
///     finish(A)              completes A, then B
///     pop_finished()         returns A, then B
///
/// Memory is needed only to run actions out of order: without it the engine runs one action at a
/// time.
class Engine {
 public:
  explicit Engine(weir_dependence_policy policy, Ordering ordering = Ordering::host) noexcept
      : policy_(policy, ordering), device_(ordering) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Whether the engine accepts the next action of the FIFO now.
  bool accepts() const noexcept {
    return !blocked_ && inline_action_ == nullptr && deferred_ == nullptr &&
           (!policy_.is_fifo() || device_.active() || window_.empty());
  }

  /// Admits the next action. Its `pending` is the number of events that it waits for, its `failure`
  /// that of events which have failed already; clear_poison ignores it. With a `status` other than
  /// OK the action does not run.
  ///
  /// With `may_run_inline`, allowed for compute actions only, the caller promises to run the action
  /// at once if this returns true, and to call nothing else of the engine before finish(): this
  /// path needs no bookkeeping. Otherwise one of the pop functions returns the action when it is
  /// ready.
  bool admit(Action& action, bool may_run_inline) noexcept {
    assert(accepts() && (!may_run_inline || action.kind == ActionKind::compute));
    action.in_window = false;
    action.started = may_run_inline;
    if (may_run_inline && window_.empty() && policy_.has_no_failure() &&
        action.status == WEIR_STATUS_OK) [[likely]] {
      inline_action_ = &action;
      return true;
    }
    admit_tracked(action);
    return false;
  }

  /// Whether an action is on the inline fast path: the owner must not release the engine before
  /// finish().
  bool runs_inline() const noexcept { return inline_action_ != nullptr; }

  /// Return the next ready action of a kind, nullptr without one.
  Action* pop_external() noexcept { return pop<&ReadyQueue::pop_external>(); }
  Action* pop_transfer() noexcept { return pop<&ReadyQueue::pop_transfer>(); }
  Action* pop_compute() noexcept { return pop<&ReadyQueue::pop_compute>(); }
  bool has_ready() const noexcept { return !ready_.empty(); }

  /// Calls visit(id) for the jobs that must complete before a handed-out action.
  template <class Visit>
  void each_awaited_submission(const Action& action, Visit&& visit) const {
    device_.each_awaited(action, visit);
  }
  /// Requeues a handed-out action that the device did not accept. The engine hands it out again
  /// when all its predecessors are complete, unless one of them has failed.
  void requeue_host_ordered(Action& action) noexcept;
  /// Marks a handed-out action as submitted to the device under this submission id.
  void mark_submitted(Action& action, std::uint64_t number) noexcept;

  /// Marks the action of an awaited event as submitted under this submission id.
  void mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept;
  /// Completes a wait: the event has completed, with `failure` if that is not null.
  void satisfy(EventWait& wait, const FailureRef& failure) noexcept;

  /// Takes back a handed-out action, whose `status` and `failure` are its outcome. Returns true if
  /// this completes it without an entry in the list of finished actions.
  [[nodiscard]] bool finish(Action& action) noexcept {
    assert(action.started);
    if (&action != inline_action_) {
      finish_tracked(action);
      return false;
    }
    inline_action_ = nullptr;
    window_.skip(action.sequence());
    if (action.status != WEIR_STATUS_OK) [[unlikely]]
      conclude(action);
    return true;
  }

  /// Cancels admitted actions up to this sequence number that have not been handed out. Sync
  /// actions that wait for events stay until satisfy() was called for each.
  void cancel(const FailureRef& reason, std::uint64_t until = UINT64_MAX) noexcept;

  bool has_finished() const noexcept { return !finished_.empty(); }
  /// Removes and returns the next finished action, nullptr if there is none.
  Action* pop_finished() noexcept { return finished_.pop(); }

  /// Calls visit(action) for the admitted, incomplete actions.
  template <class Visit>
  void each_admitted(Visit&& visit) const {
    for (std::uint64_t at = window_.low(); at < window_.high(); ++at) {
      if (Action* const action = window_.at(at)) visit(*action);
    }
    if (deferred_ != nullptr) visit(*deferred_);
    if (inline_action_ != nullptr) visit(*inline_action_);
  }

  /// Whether nothing is in flight and no earlier failure can reach the next action.
  bool is_quiescent() const noexcept {
    return idle() && finished_.empty() && policy_.has_no_failure();
  }

  /// Whether no admitted action is incomplete.
  bool idle() const noexcept {
    return window_.empty() && inline_action_ == nullptr && deferred_ == nullptr;
  }

 private:
  template <Action* (ReadyQueue::*next)()>
  Action* pop() noexcept {
    while (Action* const action = (ready_.*next)()) {
      if (hand_out(*action)) return action;
    }
    return nullptr;
  }
  void admit_tracked(Action& action) noexcept;
  void finish_tracked(Action& action) noexcept;
  void insert(Action& action) noexcept;
  void resolve(Action& action) noexcept;
  void resolve_on_device(Action& action) noexcept;
  void make_ready(Action& action) noexcept;
  bool hand_out(Action& action) noexcept;
  void release_early(Action& action) noexcept;
  void poison(Action& action, const FailureRef& failure) noexcept;
  void defer(Action& action) noexcept;
  void resume_deferred() noexcept;
  void complete(Action& action) noexcept;
  void complete_front() noexcept;
  void conclude(Action& action) noexcept;
  void remove(Action& action) noexcept;
  void release_successors(Action& action) noexcept;

  // First what the inline fast path uses.
  ActionWindow window_;
  Action* inline_action_ = nullptr;  ///< on the inline fast path, outside the window
  Action* deferred_ = nullptr;       ///< waits until the window is empty: no memory to track it
  bool blocked_ = false;  ///< an ordering action of the host is admitted: nothing passes it
  bool completing_now_ = false;
  DependencePolicy policy_;
  ActionList finished_;
  ActionList completing_;
  ReadyQueue ready_;
  DeviceOrdering device_;
  EdgePool edges_;
};

}  // namespace weir::rt
