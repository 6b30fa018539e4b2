// Task queues: one sequential program over all places.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "base/handle.hpp"
#include "base/signal.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "core/action_pool.hpp"
#include "core/unreported.hpp"
#include "runtime/coherence.hpp"
#include "runtime/place_set.hpp"
#include "runtime/queue_place.hpp"
#include "runtime/queue_reductions.hpp"
#include "runtime/queue_task.hpp"
#include "runtime/waiting.hpp"
#include "sched/performance_model.hpp"
#include "sched/policy.hpp"

namespace weir::rt {

class Runtime;

/// Binds the tasks of a sequential program to places.
///
/// Producers append tasks; streams append completions to a list. A thread that adds something tries
/// the combining lock; its holder binds all tasks that can be bound. The policy chooses the place;
/// binding follows program order except for tasks that do not depend on a deferred task, until a
/// place is saturated. An access by the program is bound at once if no deferred task uses its
/// region. After binding, streams resolve the dependences. A queue with one place in host memory
/// forwards its tasks to the stream of that place.
class Queue {
 public:
  Queue(Runtime& runtime, std::uint64_t serial, const weir_queue_options& options);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  /// Waits for all tasks.
  ~Queue();

  Runtime& runtime() const noexcept { return runtime_; }
  const std::string& name() const noexcept { return name_; }
  /// Returns the serial number in the ids of its tasks.
  std::uint64_t serial() const noexcept { return serial_; }

  // Called by the program. They throw Error.
  weir_event submit(const weir_task& task, bool with_event);
  WaitResult acquire(weir_buffer* buffer, const weir_region& region, weir_access access,
                     std::int64_t timeout_ns);
  weir_event flush(weir_buffer* buffer, const weir_region& region);
  WaitResult synchronize(std::int64_t timeout_ns);
  void cancel();
  /// Logs, once each, failures that the program has not seen. Any thread.
  void report_unreported() noexcept;
  /// Waits for all tasks up to the time-out, then cancels those that have not started.
  void finish_or_cancel(std::int64_t timeout_ns) noexcept;
  /// Waits for the tasks that use a buffer, writes their results back and removes its pieces.
  void release(weir_buffer& buffer) noexcept;
  void get_info(weir_queue_info& info, weir_queue_share* shares, std::size_t count);

  // For the watchdog. A queue that forwards to a stream reports nothing.
  std::uint64_t submitted() const noexcept { return submitted_.load(); }
  std::uint64_t completed() const noexcept { return completed_.load(); }
  /// Returns a line for each deferred task, "" if there is none. Waits until the deadline for the
  /// binding thread, and binds nothing itself, because a policy may be code of the program.
  std::string report(std::int64_t deadline_ns);

  std::size_t pins = 0;  ///< threads that use it without owning its handle; guarded by the runtime

 private:
  friend class Reductions;
  using Pending = TaskList<&Task::pending_before, &Task::next>;
  using Live = TaskList<&Task::live_before, &Task::live_after>;

  // Creation and destruction.
  void open_queue_places(const weir_queue_options& options);
  void add_queue_place(weir_place& place, double weight);
  /// Scales the weights of places by the measured speeds of their kinds.
  void weigh_queue_places();
  void close_queue_places() noexcept;
  void wait_for_tasks() noexcept;

  /// Waits until all tasks are complete and host memory has all contents. Keeps failures. Returns
  /// false at the deadline.
  bool await_end(std::int64_t deadline_ns);

  void forget_pieces_of(const weir_buffer& buffer) noexcept;

  // Producers.
  /// At the limit of tasks in flight, makes progress and waits until a part of them is complete.
  void await_room();
  void grant_room() noexcept;
  static std::size_t cores_of(const std::vector<QueuePlace>& queue_places) noexcept;
  /// Submits a task without reductions. The caller calls try_progress() afterwards.
  weir_event submit_one(const weir_task& given, bool with_event);
  weir_event submit_directly(const weir_task& given, bool with_event);
  void fill_call(Task& task, const weir_task& given) const;
  NamedUse check_operand(weir_buffer* buffer, const weir_region& region, weir_access access) const;
  std::uint64_t queue_places_for(const Task& task, const weir_task& given) const;
  bool fits(const QueuePlace& queue_place, const Task& task) const;
  /// Returns a task that was not submitted to the list of spare ones.
  struct Spare {
    Queue* queue;
    void operator()(Task* task) const noexcept;
  };
  using OwnedTask = std::unique_ptr<Task, Spare>;
  OwnedTask take_task();
  void make_tasks();
  void take_ticket_of(Task& task) noexcept;
  weir_event append(OwnedTask task);
  void combine_reductions(weir_buffer* buffer, const weir_region& region, weir_access access);
  weir_event access(Task::Kind kind, weir_buffer* buffer, const weir_region& region,
                    weir_access access);
  weir_event request_access(Task::Kind kind, weir_buffer* buffer, const weir_region& region,
                            weir_access wanted);
  WaitResult await_access(const weir_event& event, std::int64_t timeout_ns);
  std::uint64_t newest() const noexcept;

  /// The state of the combining lock.
  enum class LockState : std::uint8_t {
    free,
    binding,     ///< the holder checks for new work when it unlocks
    inspecting,  ///< the holder does not: threads that add work wait for the lock
  };
  /// Returns whether the lock was free, and takes it.
  bool try_lock_as(LockState owner) noexcept {
    LockState nobody = LockState::free;
    return lock_.compare_exchange_strong(nobody, owner);
  }
  void unlock() noexcept { lock_.store(LockState::free); }

  /// Takes the lock and does all pending work, unless another thread holds the lock.
  void try_progress() noexcept;

  // The owner: the thread that holds the combining lock.
  /// Holds the lock during its lifetime; the constructor waits for the lock.
  class CombiningLock;
  std::string pending_tasks() const;
  std::string remarks() const;
  std::string why_idle(const QueuePlace& queue_place) const;
  void run_owner_pass() noexcept;
  void take_completed() noexcept;
  void take_submitted() noexcept;
  void register_uses(Task& task);
  void bind_ready() noexcept;
  Pending& pending_list_of(const Task& task) noexcept;
  Task* first_pending() const noexcept;
  bool bind_pass() noexcept;
  void bind_accesses() noexcept;
  bool bind_calls(int priority) noexcept;
  bool is_early(const Task& task) const noexcept;
  bool is_cancelled(const Task& task) const noexcept;
  static bool has_enough(const QueuePlace& queue_place) noexcept;
  void note_load(QueuePlace& queue_place) noexcept;
  bool depends_on_deferred(const Task& task) const noexcept;
  bool bind(Task& task) noexcept;
  /// Measured times of a kernel in a place.
  struct Times {
    PerformanceModel::Curve* curve = nullptr;
    std::uint64_t bound_before = 0;  ///< tasks of the kernel when the last one was bound here
  };
  /// The place that the policy chose for a task, with the estimates it used.
  struct Choice {
    QueuePlace* queue_place = nullptr;  ///< null: deferred
    std::int64_t arrival_ns = 0;        ///< expected arrival of its operands
    std::int64_t start_ns = 0;          ///< expected start
    std::int64_t run_ns = -1;
    bool unsure = true;       ///< no measured time for its size there
    std::uint64_t bytes = 0;  ///< of all operands
  };
  Choice choose(const Task& task);
  void note_bypassed(const Task& task, std::size_t chosen) noexcept;
  void add_candidate(const Task& task, std::uint64_t bytes, QueuePlace& queue_place);
  Times& times_of(const Task& task, const QueuePlace& queue_place);
  void bind_call(Task& task, const Choice& choice);
  void bind_access(Task& task);
  void expect_end(BoundTask& bound, const Choice& choice);
  BoundTask& take_bound(Task& task);
  void give_bound(BoundTask& bound) noexcept;
  void note_run(const BoundTask& bound) noexcept;
  static void record_access_wait(AccessWait& access_wait, weir_status status,
                                 const FailureRef& failure) noexcept;
  static void complete_access_wait(BoundTask& task) noexcept;
  void remove_pending(Task& task) noexcept;
  Outcome policy_never_binds(const Task& task) const noexcept;
  void fail_task(Task& task, Outcome outcome) noexcept;
  void end_unbound(Task& task, weir_status status) noexcept;
  void finish(Task& task) noexcept;
  void close(Task& task) noexcept;
  /// Notifies the waiters of finished tasks, without a lock, and keeps the tasks for reuse.
  void notify_waiters(Task* finished) noexcept;

  static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure);
  static void on_access_wait(Waiter& waiter, weir_status status, const FailureRef& failure);

  /// Maximum number of tasks that a pass offers to the policy.
  static constexpr std::size_t kLookahead = 64;
  static constexpr std::size_t kMostSkipped = 512;  ///< tasks that it examines for that

  Runtime& runtime_;
  const std::uint64_t serial_;
  const std::string name_;
  const std::string policy_name_;
  const bool keeps_models_;
  const std::size_t most_in_flight_;
  const PlaceSet places_;
  std::vector<QueuePlace> queue_places_;
  bool direct_ = false;  ///< forwards tasks to its only stream

  // Of the producers.
  std::optional<Reductions> reductions_;
  SpinLock submitting_;
  Ticket* tickets_ = nullptr;  ///< list of free ones
  Task* submitted_first_ = nullptr;
  Task* submitted_last_ = nullptr;
  std::vector<std::unique_ptr<Task[]>> tasks_;
  Task* spare_ = nullptr;
  sys::Atomic<std::uint64_t> made_{0};  ///< number of tasks so far, accesses included
  /// The last access by the program; none if `kind` is call.
  struct LastAccess {
    Task::Kind kind = Task::Kind::call;
    const weir_buffer* buffer = nullptr;
    Region region;
    weir_access access = WEIR_ACCESS_READ;
    weir_event event = WEIR_EVENT_INIT;
  } last_access_;

  sys::Atomic<std::uint64_t> submitted_{0}, completed_{0};  ///< number of calls
  sys::Atomic<std::uint64_t> closed_{0};                    ///< number of completed tasks
  /// From a thread that waits to submit.
  struct RoomRequest {
    std::uint64_t closed = 0;  ///< number of tasks that must be complete
    Signal granted;
    RoomRequest* next = nullptr;
  };
  sys::Atomic<RoomRequest*> new_room_requests_{nullptr};
  sys::Atomic<std::uint64_t> cancel_until_{0};        ///< cancellation watermark
  sys::Atomic<std::uint32_t> notifiers_{0};           ///< threads that are reporting a completion
  sys::Atomic<BoundTask*> completed_tasks_{nullptr};  ///< completion list
  sys::Atomic<bool> more_{false};                     ///< there is something to do for the owner
  sys::Atomic<LockState> lock_{LockState::free};

  // Of the owner.
  std::unique_ptr<Policy> policy_;
  PerformanceModel models_;
  std::vector<Times> times_;          ///< by kernel and place
  std::vector<std::uint64_t> bound_;  ///< number of bound tasks, by kernel
  std::unique_ptr<Coherence> coherence_;
  // Deferred tasks in program order.
  std::array<Pending, 3> pending_calls_;  ///< by priority
  Pending pending_accesses_;
  std::array<std::uint64_t, 3> waiting_{};  ///< number of deferred tasks, by priority
  Live live_;                               ///< all incomplete tasks
  std::uint64_t running_ = 0;               ///< tasks that are bound and incomplete
  std::deque<BoundTask> bound_tasks_;
  BoundTask* spare_bound_ = nullptr;
  std::size_t saturated_places_ = 0;
  /// The number of tasks that a task deferred for a saturated place represents, by priority: more
  /// than one if the last pass found more ready tasks than it examined.
  std::array<std::int64_t, 3> claims_each_{1, 1, 1};
  std::int64_t claims_ = 1;
  std::int64_t pass_began_ns_ = 0;
  bool rescan_ = false;           ///< another pass may bind tasks that the last one deferred
  bool policy_deferred_ = false;  ///< the last pass deferred a task because of the policy
  std::uint64_t cancelled_ = 0;   ///< value of cancel_until_ at the last pass
  Task* finished_ = nullptr;
  std::vector<weir_candidate> candidates_;
  std::vector<CandidateEstimate> estimates_;
  std::vector<QueuePlace*> candidate_places_;
  std::vector<Piece*> found_;
  std::vector<weir_operand> operands_;
  std::vector<weir_event> waits_;
  RoomRequest* room_requests_ = nullptr;
  std::set<std::string> logged_remarks_;
  FailureRef broken_;  ///< failure of a task with unknown pieces: poisons all later tasks
  FailureRef first_failure_;
  weir_status first_status_ = WEIR_STATUS_OK;
  std::uint64_t first_sequence_ = 0;
  /// A failure of copies that a stream reported to a call that then timed out.
  WaitResult unreported_failure_;
  Unreported unreported_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_queue final : weir::rt::Handle<weir_queue>, weir::rt::Queue {
  static constexpr const char* kNoun = "queue";
  using Queue::Queue;
};
