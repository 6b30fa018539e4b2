// How the owner of a task queue binds tasks to places.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tasks/performance_model.hpp"
#include "tasks/policy.hpp"
#include "tasks/queue_combining_lock.hpp"
#include "tasks/queue_task.hpp"

namespace weir::rt {

/// The tasks without a place: calls by priority, and accesses by the program, each in program
/// order. Their uses are registered with the pieces, so that it knows which tasks depend on a
/// deferred one. Owner.
class DeferredTasks {
 public:
  using List = LinkedList<Task, &Task::pending_before, &Task::next>;

  explicit DeferredTasks(PieceTable& pieces) noexcept : pieces_(pieces) {}

  /// Adds a task, and finds the pieces of a call. Throws std::bad_alloc; the task is added anyway.
  void add(Task& task);
  void remove(Task& task) noexcept;
  /// Whether the task depends on an earlier deferred task.
  bool depends_on_deferred(const Task& task) const noexcept;

  Task* first() const noexcept;
  Task* first_access() const noexcept { return accesses_.first(); }
  /// Returns the first call of a level (priority + 1).
  Task* first_call(std::size_t level) const noexcept { return calls_[level].first(); }
  std::uint64_t calls(std::size_t level) const noexcept { return counts_[level]; }
  std::uint64_t calls() const noexcept { return counts_[0] + counts_[1] + counts_[2]; }

 private:
  List& list_of(const Task& task) noexcept {
    return task.kind == Task::Kind::call ? calls_[task.level] : accesses_;
  }

  PieceTable& pieces_;
  std::array<List, 3> calls_;  ///< by level
  std::array<std::uint64_t, 3> counts_{};
  List accesses_;
  std::vector<Piece*> found_;
};

/// Asks the policy of a queue for the place of a task, with estimates by measured times. Owner.
class PlaceChooser {
 public:
  /// Weighs the places by the measured speeds of their kinds, if the program gave no weights.
  PlaceChooser(const QueueProperties& properties, const weir_queue_options& options,
               QueuePlaces& places, Coherence& coherence, std::unique_ptr<Policy> policy);

  /// The place of a task, with the estimates that led to it.
  struct Choice {
    QueuePlace* queue_place = nullptr;  ///< null: deferred
    bool by_policy = false;             ///< deferred by the policy, not for a saturated place
    std::int64_t arrival_ns = 0;        ///< expected arrival of its operands
    std::int64_t start_ns = 0;          ///< expected start
    std::int64_t run_ns = -1;
    bool unsure = true;       ///< no measured time for its size there
    std::uint64_t bytes = 0;  ///< of all operands
  };
  /// Starts a pass: drops the claims of the last one.
  void begin_pass(std::int64_t now_ns) noexcept;
  std::int64_t pass_began_ns() const noexcept { return now_ns_; }
  /// Chooses a place. If that is saturated, the task claims it for itself and `claims` - 1 others
  /// like it, and is deferred. Throws Error if the policy chooses a place that does not exist.
  Choice choose(const Task& task, std::int64_t claims);
  bool wants_ready_tasks() const noexcept { return policy_->wants_ready_tasks(); }

  /// Counts a task that is bound to a place. Throws std::bad_alloc.
  void note_bound(const Task& task, const QueuePlace& queue_place);
  /// Records a measured time, unless there is no memory for it.
  void note_run(const Task& task, const QueuePlace& queue_place, std::uint64_t bytes,
                std::int64_t run_ns) noexcept;
  /// Stores the measured times in the user's cache.
  void store_models() const noexcept;
  /// Returns a line for each place that has got no task.
  std::string remarks() const;

 private:
  /// Measured times of a kernel in a place.
  struct Times {
    PerformanceModel::Curve* curve = nullptr;
    std::uint64_t bound_before = 0;  ///< tasks of the kernel when the last one was bound here
  };
  void add_candidate(const Task& task, std::uint64_t bytes, QueuePlace& queue_place);
  Times& times_of(const Task& task, const QueuePlace& queue_place);
  void note_bypassed(const Task& task, std::size_t chosen) noexcept;
  std::string why_idle(const QueuePlace& queue_place) const;

  const QueueProperties& properties_;
  std::vector<QueuePlace>& queue_places_;
  Coherence& coherence_;
  const std::unique_ptr<Policy> policy_;
  PerformanceModel models_;
  std::vector<Times> times_;          ///< by kernel and place
  std::vector<std::uint64_t> bound_;  ///< number of bound tasks, by kernel
  std::int64_t now_ns_ = 0;           ///< start of the pass
  // Of the task that is asked about, by candidate.
  std::vector<weir_candidate> candidates_;
  std::vector<CandidateEstimate> estimates_;
  std::vector<QueuePlace*> candidate_places_;
};

/// Binds the tasks of a queue to places.
///
/// A pass binds accesses by the program in order, and then calls, high priority first. It offers up
/// to 64 calls of a priority to the policy, in program order except for calls that depend on a
/// deferred task. A call whose place is saturated (`QueuePlace::has_enough()`) stays deferred and
/// claims the place, which makes it less attractive for calls behind it: a saturated place does not
/// block the window. Streams resolve the dependences between bound tasks.
///
/// Only the owner, the thread that holds the combining lock, uses a binder.
///
/// Example: policy `finish`, a host H and a device D of one core each, independent calls of 10 ms
/// on H and 1 ms on D. Six calls saturate a place: one that runs, and five that wait.
///
///     call    would end on H, D (ms)   outcome
///     1       10, 1                    bound to D, and so are 2 to 6: D is saturated
///     7       10, 7                    D ends it first: deferred, and claims D
///     8, 9    10, 8 and 10, 9          the same behind 7: a claim counts like a bound call
///     10      10, 10                   bound to H, before 7 to 9
///     11      20, 11 at most           deferred, and claims D
///     12      reads what 7 writes      not offered: depends on a deferred call
///     when 4 calls on D are complete, fewer than 4 are left, and D is no longer saturated: the
///     next pass offers 7 first, and binds 7 to 9 and 11 to D
class TaskBinder {
 public:
  TaskBinder(const QueueProperties& properties, const weir_queue_options& options,
             QueuePlaces& places, std::unique_ptr<Policy> policy, SubmissionQueue& submissions,
             BoundTasks& bound, Unreported& unreported, const CombiningLock& lock);

  /// Completes the tasks of a completion list.
  void take_completed(BoundTask* list) noexcept;
  /// Adds submitted tasks to the deferred ones.
  void take_submitted(Task* list) noexcept;
  /// Binds all tasks that can be bound. Returns whether the owner must call it again, because a
  /// task has failed that the policy would never bind.
  bool bind_ready() noexcept;
  /// Returns a line for each deferred call, "" if there is none. Throws std::bad_alloc.
  std::string describe_deferred() const;

  Coherence& coherence() noexcept { return coherence_; }
  PlaceChooser& chooser() noexcept { return chooser_; }
  LiveTasks& live() noexcept { return live_; }

 private:
  using Choice = PlaceChooser::Choice;
  static constexpr std::size_t kLookahead = 64;     ///< tasks that a pass offers to the policy
  static constexpr std::size_t kMostSkipped = 512;  ///< tasks that it examines for that

  bool bind_pass() noexcept;
  void bind_accesses() noexcept;
  bool bind_calls(std::size_t level) noexcept;
  bool bind(Task& task) noexcept;
  void bind_call(Task& task, const Choice& choice);
  bool is_cancelled(const Task& task) const noexcept;
  void count_in(QueuePlace& queue_place, const BoundTask& bound, int count) noexcept;
  void note_run(const BoundTask& bound) noexcept;
  void fail_task(Task& task, Outcome outcome) noexcept;
  void end_unbound(Task& task, weir_status status) noexcept;

  const QueueProperties& properties_;
  std::vector<QueuePlace>& queue_places_;
  BoundTasks& bound_;
  Unreported& unreported_;
  const sys::Atomic<std::uint64_t>& cancelled_until_;
  const CombiningLock& lock_;  ///< for assertions

  Coherence coherence_;
  PlaceChooser chooser_;
  DeferredTasks deferred_;
  LiveTasks live_;
  std::uint64_t running_ = 0;  ///< tasks that are bound and incomplete
  std::size_t saturated_places_ = 0;
  /// The number of tasks that a task deferred for a saturated place represents, by level: more than
  /// one if the last pass found more ready tasks than it examined.
  std::array<std::int64_t, 3> claims_{1, 1, 1};
  bool rescan_ = false;           ///< another pass may bind tasks that the last one deferred
  bool policy_deferred_ = false;  ///< the last pass deferred a task because of the policy
  std::uint64_t cancelled_ = 0;   ///< the cancellation watermark at the last pass
  std::vector<weir_operand> operands_;
  std::vector<weir_event> waits_;
};

}  // namespace weir::rt
