// The engine of one stream: decides which action may run when.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <weir/stream.h>

#include "core/action.hpp"
#include "core/dependence.hpp"

namespace weir::rt {

/// A first-in first-out list of actions linked by `next`.
class ActionList {
 public:
  bool empty() const noexcept { return head_ == nullptr; }
  void push(Action& action) noexcept {
    action.next = nullptr;
    (tail_ ? tail_->next : head_) = &action;
    tail_ = &action;
  }
  Action* pop() noexcept {
    Action* const action = head_;
    if (action != nullptr) {
      head_ = action->next;
      if (head_ == nullptr) tail_ = nullptr;
    }
    return action;
  }

 private:
  Action* head_ = nullptr;
  Action* tail_ = nullptr;
};

/// Where dependences are resolved.
enum class Ordering : std::uint8_t {
  host,    ///< in the engine: it hands out an action when its predecessors are complete
  device,  ///< on the device: the engine hands out an action when its predecessors are submitted
};

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
      : policy_(policy), device_ordered_(ordering == Ordering::device), window_(device_ordered_) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Whether the engine accepts the next action of the FIFO now.
  bool accepts() const noexcept {
    return !blocked_ && inline_action_ == nullptr && deferred_ == nullptr &&
           (policy_ != WEIR_DEPENDENCE_POLICY_FIFO || device_ordered_ || window_.empty());
  }

  /// Admits the next action. Its `pending` is the number of events that it waits for, its `failure`
  /// that of events which have failed already; clear_poison ignores it. With a `status` other than
  /// OK the action does not run.
  ///
  /// With `may_run_inline`, allowed for compute actions only, the caller promises to run the action
  /// at once if this returns true, and to call nothing else of the engine before finish(): this
  /// path needs no bookkeeping. Otherwise pop_transfer() or pop_compute() returns the action when
  /// it is ready.
  bool admit(Action& action, bool may_run_inline) noexcept;

  /// Whether an action is on the inline fast path: the owner must not release the engine before
  /// finish().
  bool runs_inline() const noexcept { return inline_action_ != nullptr; }

  /// Return the next ready transfer or compute action, nullptr if there is none.
  Action* pop_transfer() noexcept { return pop_ready(ready_transfers_); }
  Action* pop_compute() noexcept {
    for (ActionList& list : ready_computes_) {
      if (list.empty()) continue;
      if (Action* const action = pop_ready(list)) return action;
    }
    return nullptr;
  }
  bool has_transfer() const noexcept { return !ready_transfers_.empty(); }
  bool has_compute() const noexcept {
    return !ready_computes_[0].empty() || !ready_computes_[1].empty() ||
           !ready_computes_[2].empty();
  }

  /// Calls visit(id) for the jobs that must complete before a handed-out action.
  template <class Visit>
  void each_awaited_submission(const Action& action, Visit&& visit) const {
    for (const Edge* edge = submission_of(action).predecessors; edge != nullptr;
         edge = edge->next_predecessor) {
      if (edge->predecessor == nullptr) continue;
      const std::uint64_t number = submission_of(*edge->predecessor).id;
      if (number != 0) {
        visit(number);
      } else {
        each_awaited_submission(*edge->predecessor,
                                visit);  // not a job: visits its predecessors instead
      }
    }
    for (const EventWait& wait : const_cast<Action&>(action).events()) {
      if (wait.submission_id != 0) visit(wait.submission_id);
    }
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
  [[nodiscard]] bool finish(Action& action) noexcept;

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
  bool is_quiescent() const noexcept { return idle() && finished_.empty() && has_no_failure(); }

  /// Whether no admitted action is incomplete.
  bool idle() const noexcept {
    return window_.empty() && inline_action_ == nullptr && deferred_ == nullptr;
  }

 private:
  /// The state of an action under device ordering.
  struct Submission {
    Edge* predecessors = nullptr;  ///< edges from its predecessors, until it is submitted
    std::uint64_t id = 0;          ///< submission id; 0: none yet
    /// Number of predecessors and events that are not submitted.
    std::uint32_t unsubmitted_predecessors = 0;
    bool submitted = false;  ///< successors may be submitted
    bool queued = false;     ///< in a list of ready actions
    bool executed = false;   ///< returned by the driver, but a predecessor is incomplete
  };

  /// The admitted actions by sequence number, from the oldest incomplete one.
  class Window {
   public:
    explicit Window(bool device_ordered) noexcept : device_ordered_(device_ordered) {}
    bool empty() const noexcept { return low_ == high_; }
    std::uint64_t low() const noexcept { return low_; }
    std::uint64_t high() const noexcept { return high_; }
    Action* at(std::uint64_t sequence) const noexcept {
      return sequence >= low_ && sequence < high_ ? ring_[sequence & mask_] : nullptr;
    }
    Action* front() const noexcept { return empty() ? nullptr : ring_[low_ & mask_]; }
    /// Returns the submission state of an action in the window, with device ordering.
    const Submission& submission(const Action& action) const noexcept {
      return submissions_[action.sequence() & mask_];
    }
    /// Makes room for one more action. Throws std::bad_alloc.
    void reserve();
    void push(Action& action) noexcept;
    void remove(const Action& action) noexcept;
    /// Skips a sequence number while the window is empty.
    void skip(std::uint64_t sequence) noexcept { low_ = high_ = sequence + 1; }

   private:
    const bool device_ordered_;
    std::vector<Action*> ring_;
    std::vector<Submission> submissions_;
    std::uint64_t mask_ = 0;
    std::uint64_t low_ = 1;
    std::uint64_t high_ = 1;
  };

  /// A pool of reusable edges, allocated in chunks.
  class EdgePool {
   public:
    void reserve(std::size_t count);
    Edge& take() noexcept;
    void give(Edge& edge) noexcept;

   private:
    std::vector<std::unique_ptr<Edge[]>> chunks_;
    Edge* free_ = nullptr;
    std::size_t free_count_ = 0;
  };

  const Submission& submission_of(const Action& action) const noexcept {
    return action.in_window ? window_.submission(action) : inline_submission_;
  }
  Submission& submission_of(const Action& action) noexcept {
    return const_cast<Submission&>(std::as_const(*this).submission_of(action));
  }

  bool tracks_operands() const noexcept { return policy_ == WEIR_DEPENDENCE_POLICY_OPERANDS; }
  /// Whether only barriers inherit failures.
  bool is_unordered() const noexcept { return policy_ == WEIR_DEPENDENCE_POLICY_NONE; }
  bool has_no_failure() const noexcept { return !first_failure_ && !table_.poisoned(); }
  bool in_flight(std::uint64_t sequence) const noexcept { return window_.at(sequence) != nullptr; }

  void admit_ordering(Action& action) noexcept;
  void admit_barrier(Action& action);
  void follow_barrier(bool ignores_failure);
  void admit_tracked(Action& action);
  void admit_fifo(Action& action);
  void enter(Action& action) noexcept;
  static std::uint32_t count_unsubmitted_events(Action& action) noexcept;
  void connect(Action& action) noexcept;
  void note_wait(Action& action, Edge& edge) noexcept;
  void resolve(Action& action) noexcept;
  void resolve_on_device(Action& action) noexcept;
  void make_ready(Action& action) noexcept;
  Action* pop_ready(ActionList& list) noexcept;
  bool may_release_early(const Action& action) const noexcept;
  void release_early(Action& action) noexcept;
  void drop_waits(Action& action) noexcept;
  void poison(Action& action, const FailureRef& failure) noexcept;
  void inherit_past_cancelled(Action& action) noexcept;
  void release_on_device(Edge& edge) noexcept;
  void complete_cancelled(ActionList& list) noexcept;
  void defer(Action& action) noexcept;
  void inherit_failures(Action& action) noexcept;
  void resume_deferred() noexcept;
  void complete(Action& action) noexcept;
  void complete_one(Action& action) noexcept;
  void release_successors(Action& action) noexcept;
  void complete_front() noexcept;
  bool waits_for_front(const Action& action) const noexcept;
  void complete_ordering(Action& action) noexcept;
  void complete_unrun(Action& action) noexcept;
  void note_failure(Action& action) noexcept;

  const weir_dependence_policy policy_;
  const bool device_ordered_;
  Window window_;
  Submission inline_submission_;  ///< of an action outside the window
  DependenceTable table_;
  EdgePool edges_;
  struct Predecessor {
    Action* action;
    bool ignores_failure;
  };
  std::vector<Predecessor> predecessors_;
  ActionList ready_transfers_;
  std::array<ActionList, 3> ready_computes_;  ///< by priority class
  ActionList finished_;
  ActionList completing_;
  bool completing_now_ = false;
  std::uint64_t last_fifo_ = 0;     ///< sequence number of the predecessor of the next action
  std::uint64_t last_barrier_ = 0;  ///< sequence number of the last barrier under device ordering
  bool blocked_ = false;  ///< an ordering action of the host is admitted: nothing passes it
  Action* inline_action_ = nullptr;  ///< on the inline fast path, outside the window
  Action* deferred_ = nullptr;       ///< waits until the window is empty: no memory to track it
  FailureRef poison_all_;            ///< poisons every later action of the stream
  FailureRef first_failure_;         ///< reported by the next drain
  weir_status first_status_ = WEIR_STATUS_OK;
  std::uint64_t first_sequence_ = 0;
};

}  // namespace weir::rt
