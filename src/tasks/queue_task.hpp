// Tasks of a queue, from submission to completion.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.hpp"
#include "stream/waiting.hpp"
#include "tasks/coherence.hpp"

namespace weir::rt {

class BoundTasks;
struct BoundTask;

/// Data that only few tasks have.
struct TaskExtras {
  std::string name;
  std::unique_ptr<std::byte[]> spill;  ///< arguments that do not fit inline
  std::size_t spill_bytes = 0;
  std::vector<Region> regions;  ///< by operand: regions that do not fit in a use
};

/// One task. The program's event names its ticket, which also holds its outcome.
///
/// All submitted tasks may be deferred, so each is small: a BoundTask holds what a task needs only
/// while it is bound.
struct Task {
  enum class Kind : std::uint8_t {
    call,    ///< calls a kernel
    access,  ///< an access by the program to a region of host memory
    fetch,   ///< copies everything to host memory
  };
  static constexpr std::uint64_t kMostSequence = (std::uint64_t{1} << Action::kSequenceBits) - 1;
  static constexpr std::size_t kInlineBytes = 3 * sizeof(PieceUse) + 2 * sizeof(weir_scalar);

  Ticket* ticket = nullptr;  ///< kept for the next task
  Task* next = nullptr;      ///< link of the submitted, deferred, finished or spare list
  Task* pending_before = nullptr;
  Task *live_before = nullptr, *live_after = nullptr;
  std::uint64_t sequence : Action::kSequenceBits = 0;
  std::uint8_t use_count = 0, scalar_count = 0;
  Kind kind : 2 = Kind::call;
  std::uint8_t level : 2 = 1;        ///< priority + 1
  bool pending : 1 = false;          ///< deferred: has no place yet
  bool found : 1 = false;            ///< its uses have pieces
  bool completion_held : 1 = false;  ///< complete, except for tasks before it
  bool kept : 1 = false;             ///< the failure log keeps its ticket
  std::uint64_t allowed_places = 0;  ///< bit i: queue place i may run it
  const weir_kernel* kernel = nullptr;
  std::unique_ptr<TaskExtras> extras;  ///< kept for reuse
  alignas(8) std::array<std::byte, kInlineBytes> inline_arguments;

  /// By operand.
  std::span<PieceUse> uses() noexcept {
    return {std::launder(reinterpret_cast<PieceUse*>(arguments())), use_count};
  }
  std::span<const PieceUse> uses() const noexcept { return const_cast<Task*>(this)->uses(); }
  std::span<weir_scalar> scalars() noexcept {
    std::byte* const start = arguments() + use_count * sizeof(PieceUse);
    return {std::launder(reinterpret_cast<weir_scalar*>(start)), scalar_count};
  }
  std::span<const weir_scalar> scalars() const noexcept {
    return const_cast<Task*>(this)->scalars();
  }

  /// Sets the argument counts, at most 255 each, and allocates memory for the arguments. Throws
  /// std::bad_alloc.
  void reserve(std::size_t uses, std::size_t scalars);
  /// Sets the use with this index, below the reserved count. Throws std::bad_alloc.
  void set_use(std::size_t index, const NamedUse& named);
  /// Sets the task's own name; null: none. Throws std::bad_alloc.
  void set_name(const char* name);

  bool has_name() const noexcept { return extras && !extras->name.empty(); }
  const char* label() const noexcept {
    if (has_name()) return extras->name.c_str();
    return kernel != nullptr ? kernel->name().c_str() : "access";
  }
  /// Returns the bytes of all operands. Their buffers must be alive.
  std::uint64_t bytes() const noexcept;

 private:
  std::byte* arguments() noexcept {
    return bytes_of(use_count, scalar_count) > kInlineBytes ? extras->spill.get()
                                                            : inline_arguments.data();
  }
  static constexpr std::size_t bytes_of(std::size_t uses, std::size_t scalars) noexcept {
    return uses * sizeof(PieceUse) + scalars * sizeof(weir_scalar);
  }
  TaskExtras& reserve_extras();
};

static_assert(sizeof(Task) + sizeof(Ticket) <= 248, "as many as 2^16 may wait");

/// One event that an access or a fetch by the program waits for.
struct AccessWait : Waiter {
  BoundTask* task = nullptr;
  bool ignores_failure = false;  ///< does not propagate the event's failure
  FailureRef failure;
};

/// What a task needs from its binding until the owner processes its completion. There are few: the
/// tasks in flight on the places, and the accesses by the program.
struct BoundTask : ActionWatcher {
  BoundTasks* list = nullptr;
  Task* task = nullptr;
  BoundTask* next = nullptr;  ///< link of the completion list or of the spare ones
  std::uint64_t bytes = 0;    ///< of all operands
  std::uint32_t queue_place = Use::kNoPlace;
  bool unmeasured = false;  ///< bound without an estimate
  bool timed = false;       ///< the stream measures `run_ns`
  std::int64_t estimate_ns = 0;
  std::int64_t run_ns = -1;
  std::vector<AccessWait> access_waits;  ///< events that an access or a fetch waits for
  sys::Atomic<std::uint32_t> access_waits_left{0};
};

/// Tasks between the program and the owner of a queue: the spare ones, and the submitted ones that
/// the owner has not collected. Counts tasks, and bounds those in flight. Any thread.
class SubmissionQueue {
 public:
  explicit SubmissionQueue(const QueueProperties& properties) noexcept : properties_(properties) {}
  /// All tasks are complete.
  ~SubmissionQueue();

  /// Returns a task that was not submitted to the spare ones.
  struct Return {
    SubmissionQueue* to;
    void operator()(Task* task) const noexcept { to->give(*task, *task); }
  };
  using OwnedTask = std::unique_ptr<Task, Return>;
  /// Throws std::bad_alloc, as append() does.
  OwnedTask take();
  /// Submits the task under the next sequence number, and opens and returns its event.
  weir_event append(OwnedTask task);
  /// Notifies the waiters of a list of complete tasks, which are then spare. Holds no lock.
  void notify_waiters(Task* finished) noexcept;
  /// Cancels the calls made so far: raises the cancellation watermark.
  void cancel() noexcept;

  /// A thread that waits until enough tasks are complete. Lives until `has_room` is delivered.
  struct RoomRequest {
    std::uint64_t closed = 0;  ///< number of tasks that must be complete
    Signal has_room;
    RoomRequest* next = nullptr;
  };
  /// Whether the number of tasks in flight is at the bound: then adds the request.
  bool request_room(RoomRequest& request) noexcept;

  // Owner.
  /// Returns the submitted tasks in their order, linked by `next`.
  Task* collect() noexcept;
  /// Counts a complete task.
  void note_complete(const Task& task) noexcept {
    closed_.fetch_add(1);
    if (task.kind == Task::Kind::call) completed_.fetch_add(1);
  }
  void grant_room() noexcept;

  /// Returns the number of tasks so far, accesses included.
  std::uint64_t made() const noexcept { return made_.load(); }
  // Numbers of calls.
  std::uint64_t submitted() const noexcept { return submitted_.load(); }
  std::uint64_t completed() const noexcept { return completed_.load(); }
  const sys::Atomic<std::uint64_t>& cancelled_until() const noexcept { return cancelled_until_; }

 private:
  void give(Task& first, Task& last) noexcept;

  const QueueProperties& properties_;
  SpinLock lock_;
  Ticket* tickets_ WEIR_GUARDED_BY(lock_) = nullptr;  ///< of no task yet
  Task* first_ WEIR_GUARDED_BY(lock_) = nullptr;      ///< list of submitted ones
  Task* last_ WEIR_GUARDED_BY(lock_) = nullptr;
  std::vector<std::unique_ptr<Task[]>> tasks_ WEIR_GUARDED_BY(lock_);
  Task* spare_ WEIR_GUARDED_BY(lock_) = nullptr;
  sys::Atomic<std::uint64_t> made_{0}, closed_{0}, submitted_{0}, completed_{0};
  sys::Atomic<std::uint64_t> cancelled_until_{0};
  sys::Atomic<RoomRequest*> new_requests_{nullptr};
  RoomRequest* requests_ = nullptr;  ///< of the owner
};

/// The tasks that have a place, and the completion list: those whose action has completed and that
/// the owner has not collected. Owner, except as said.
class BoundTasks {
 public:
  /// `on_end` is `deliver` of each BoundTask, and calls complete() of its list.
  BoundTasks(Registry& registry, decltype(Waiter::deliver) on_end)
      : registry_(registry), on_end_(on_end) {}

  /// Returns the state of a task that is about to get a place. Throws std::bad_alloc.
  BoundTask& take(Task& task);
  void give(BoundTask& bound) noexcept;
  /// Completes an access by the program after these events; it ignores failures of the last
  /// `ignoring_failure` ones. Throws std::bad_alloc, having done nothing.
  void await(Task& access, const std::vector<weir_event>& events, std::size_t ignoring_failure);
  /// Adds a task that ended with this outcome to the completion list, then calls wake(). The owner
  /// may process the task before this returns. await_notifiers() waits for the calling thread. Any
  /// thread.
  template <class Wake>
  void complete(BoundTask& bound, weir_status status, const FailureRef& failure,
                Wake&& wake) noexcept {
    notifiers_.fetch_add(1);
    bound.task->ticket->status = status;
    bound.task->ticket->failure = failure;
    if (status == WEIR_STATUS_OK && bound.timed) {
      bound.run_ns = bound.action->record().times.ended - bound.action->record().times.started;
    }
    bound.next = completed_.load();
    while (!completed_.compare_exchange_weak(bound.next, &bound)) {
    }
    wake();
    notifiers_.fetch_sub(1);
  }
  /// Returns the completion list.
  BoundTask* collect() noexcept { return completed_.exchange(nullptr); }
  /// Any thread.
  bool any_completed() const noexcept { return completed_.load() != nullptr; }
  /// Waits for the threads that are reporting a completion. There will be no others. Any thread.
  void await_notifiers() const noexcept {
    while (notifiers_.load() > 0) sys::yield();
  }

 private:
  static void on_access_wait(Waiter& waiter, weir_status status, const FailureRef& failure);
  static void complete_one_wait(BoundTask& bound) noexcept;

  Registry& registry_;
  const decltype(Waiter::deliver) on_end_;
  std::deque<BoundTask> made_;
  BoundTask* spare_ = nullptr;
  sys::Atomic<BoundTask*> completed_{nullptr};
  sys::Atomic<std::uint32_t> notifiers_{0};  ///< threads that are reporting a completion
};

/// All incomplete tasks, in program order, and the failures since the program last synchronised.
/// Owner.
class LiveTasks {
 public:
  LiveTasks(Registry& registry, SubmissionQueue& submissions) noexcept
      : registry_(registry), submissions_(submissions) {}

  void add(Task& task) noexcept { tasks_.push(task); }
  /// Completes a task, which has its outcome; a fetch only after everything before it.
  void finish(Task& task) noexcept;
  /// Returns the list of completed tasks, whose waiters are to be notified.
  Task* take_finished() noexcept { return std::exchange(finished_, nullptr); }
  /// Makes the tasks forget the pieces of a buffer. A task whose action has completed stays until
  /// the owner processes the completion, which may be after the buffer was destroyed.
  void forget_pieces_of(const weir_buffer& buffer) noexcept;

  /// Keeps a failure of copies that a stream reported to a synchronise that may then time out.
  void keep_failure(WaitResult&& result) noexcept;
  /// Returns the first failure in program order, else the one that was kept, and forgets all.
  WaitResult take_failure() noexcept;
  /// Adds what take_failure() would return or forget to what the program has not seen.
  void add_failures_to(Unreported& unreported) const noexcept;

  /// Failure of a task with unknown pieces: poisons all later tasks.
  FailureRef poison;

 private:
  void close(Task& task) noexcept;

  Registry& registry_;
  SubmissionQueue& submissions_;
  LinkedList<Task, &Task::live_before, &Task::live_after> tasks_;
  Task* finished_ = nullptr;
  WaitResult first_failure_, kept_failure_;
  std::uint64_t first_sequence_ = 0;
};

}  // namespace weir::rt
