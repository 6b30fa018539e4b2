// Streams: where producers and the engine meet.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/stream.h>

#include "base/handle.hpp"
#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/action_pool.hpp"
#include "core/action_queue.hpp"
#include "core/engine.hpp"
#include "core/mailbox.hpp"
#include "core/progress.hpp"
#include "core/unreported.hpp"
#include "runtime/place.hpp"

namespace weir::rt {

class History;
class Runtime;
class StreamReport;

/// Is told of the end of an action, whose slot and times are still there then.
struct ActionWatcher : Waiter {
  const Action* action = nullptr;
};

/// A FIFO of actions and its engine, as an actor.
///
/// Any thread enqueues; producers share one lock. One thread at a time, the owner, runs the engine.
/// A thread that posts a message to a stream without owner becomes the owner. Completions of
/// copies, jobs and events arrive as messages; their sender does not touch the stream afterwards.
class Stream : private CopySink {
 public:
  Stream(Place& place, std::uint64_t serial, std::string name, const weir_stream_options& options);
  ~Stream();

  Place& place() const noexcept { return place_; }
  /// One end of a copy: 0 is the source, 1 the target.
  CopyEnd end_of_copy(const Action& action, std::size_t end) const noexcept;
  Domain& domain() const noexcept { return place_.domain(); }
  Runtime& runtime() const noexcept { return runtime_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t serial() const noexcept { return serial_; }
  std::size_t priority() const noexcept { return priority_; }

  /// Before a thread of the program enqueues: when max_in_flight actions are not complete, helps
  /// and waits until an eighth of them is. Does not wait in a kernel or a callback.
  void await_room() {
    if (queue_.pushed() < room_until_.load(std::memory_order_relaxed)) [[likely]]
      return;
    make_room();
  }
  std::size_t max_in_flight() const noexcept { return max_in_flight_; }

  // Any thread. They throw Error, having enqueued nothing. An event is made when `with_event`.
  /// Ready actions of a higher `priority`, -1 to 1, run before others of the stream.
  weir_event compute(const weir_compute& compute, bool with_event, int priority = 0);
  weir_event transfer(const weir_transfer& transfer, bool with_event);
  weir_event sync(const weir_sync& sync, bool with_event);

  // For weir's own queues: actions that wait for events of other streams themselves.
  /// The task number up to which calls of a queue are cancelled, checked when a call becomes ready.
  /// Copies run, and the order stays. All places of a queue share one watermark: otherwise a
  /// successor of a cancelled task could run on another place.
  struct CancellationWatermark {
    const sys::Atomic<std::uint64_t>* until = nullptr;  ///< up to this number; null: none ever
    bool by_task = false;                               ///< that of the task, not of the action
  };
  /// Before anything is enqueued.
  void set_cancellation_watermark(const CancellationWatermark& watermark) noexcept {
    cancellation_watermark_ = watermark;
  }
  /// Enqueues a call of a kernel for task `number`, and somebody to tell at its end, who finds its
  /// times in its slot when it was to be `timed`.
  weir_event compute_after(const weir_compute& compute, std::span<const weir_event> events,
                           ActionWatcher& watcher, std::uint64_t number, bool timed);
  /// Enqueues a transfer that overwrites its target: earlier failures of the target affect neither
  /// the transfer nor its successors; the order stays. Failures of the last `ignoring_failure`
  /// events do not affect it either.
  weir_event overwrite_after(const weir_transfer& transfer, std::span<const weir_event> events,
                             std::size_t ignoring_failure);
  /// Enqueues a non-ordering sync on the operand: its event completes after the conflicting
  /// accesses and reports the failure of the last writer.
  weir_event fence(const weir_operand& operand);
  /// Enqueues a sync that clears the poison of its operand; it never fails.
  weir_event clear_poison_after(const weir_operand& operand, std::span<const weir_event> events);
  /// The same for a buffer in the memory of the host.
  weir_event clear_poison_on_host(const weir_operand& operand);

  /// Enqueues a barrier whose event ends with the stream's first failure, which is then forgotten,
  /// unless the drain is given up by then.
  weir_event drain(DrainFate fate = DrainFate::open);
  /// After a drain that was given up has ended with a failure: lets the stream forget it, as the
  /// program is told of it. Returns false, having done nothing, when something was enqueued since.
  bool forget_failure_of(const weir_event& drain);
  /// Whether nothing was enqueued since that action of the stream.
  bool is_last(const weir_event& event) const noexcept { return enqueued() == position_of(event); }
  /// Enqueues a marker: its event completes when everything enqueued so far has.
  weir_event mark();
  void cancel();
  /// Cancels what is enqueued and what will be.
  void cancel_permanently();
  /// Asks the owner to say what the actions wait for. Throws std::bad_alloc.
  void request_report(std::shared_ptr<StreamReport> report);

  /// Whether everything enqueued so far is complete.
  bool is_complete() const noexcept { return progress_.completed() == enqueued(); }
  /// Whether it is and nothing failed: then a drain is not needed.
  bool completed_without_failure() const noexcept {
    return progress_.completed_without_failure(enqueued());
  }
  /// Whether no thread owns the stream.
  bool has_no_owner() const noexcept { return mailbox_.has_no_owner(); }
  /// Calls meanwhile() until no thread owns the stream. The caller knows that there is no news to
  /// come.
  template <class Meanwhile>
  void wait_until_no_owner(Meanwhile&& meanwhile) const noexcept {
    mailbox_.wait_until_no_owner(meanwhile);
  }

  /// What no synchronise has told.
  Unreported& unreported() noexcept { return unreported_; }

  std::uint64_t enqueued() const noexcept { return queue_.pushed(); }
  /// Actions that are not over, weir's own included.
  std::uint64_t in_flight() const noexcept {
    const std::uint64_t completed = progress_.completed();  // first: it never overtakes
    return enqueued() - completed;
  }

  /// What happened so far, written by the owner.
  struct Counters {
    sys::Atomic<std::uint64_t> failed{0}, h2d{0}, d2h{0}, d2d{0}, elided{0};
    sys::Atomic<std::uint64_t> drained{0};  ///< drains among the completed
  };
  /// Adds what the program's actions did; weir's own drains do not count.
  void add_to(weir_stats& stats) const noexcept;
  /// Markers and touches among the actions enqueued.
  std::uint64_t non_ordering_count() const noexcept {
    return non_ordering_.load(std::memory_order_relaxed);
  }

  // The owner.
  /// Looks for actions that were enqueued; advance() and release() go by what was seen.
  void poll() noexcept { queue_.poll(); }
  /// Goes on until there is a call for a worker, which it returns, or nothing to do now. When the
  /// device orders jobs, copies are returned as well, and all are to be issued.
  Action* advance() noexcept;
  /// Says that the device has an action as its job of that number, and puts into `waits` the
  /// jobs that have to be over before it, each once. Throws std::bad_alloc, having done nothing.
  void mark_submitted(Action& action, std::uint64_t number, std::vector<std::uint64_t>& waits);
  /// Whether the action that advance() returned must be finished before the stream is let go of.
  bool runs_inline() const noexcept { return engine_.runs_inline(); }
  /// Spins briefly for messages, which costs less than to release the stream and to be scheduled
  /// again. Returns whether there are any.
  bool spin_for_messages() noexcept;
  /// Whether there may be more for a worker now.
  bool has_more() noexcept;
  /// Takes back an action; its `failure` and `status` say how it went.
  void finish(Action& action) noexcept;
  /// The thread that talks to the device: it has the action of an event that this stream waits for.
  void mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept;
  /// Releases ownership, or puts the stream into the run queue if a worker has something to do for
  /// it. Work that needs no worker is done first.
  void release_or_reschedule() noexcept;
  /// Gives up the stream. Returns false when news came in: then the caller still owns it.
  bool release() noexcept;

  // Anybody.
  /// Takes back a call from a thread that does not own the stream.
  void post_finished(Action& action) noexcept {
    action.message_kind = Message::Kind::finished;
    post(action);
  }
  /// Records how an action of the stream went wrong.
  void set_failure(Action& action, Outcome outcome) const noexcept;
  /// Called by a Residency for an action that waited for memory.
  static void retry(Action& action);

  sys::Plain<Stream*> next_in_queue = nullptr;  ///< of the place's run queue

  /// A drain that a thread waits for, or did.
  struct Drain {
    weir_event event = WEIR_EVENT_INIT;
    Stream* stream = nullptr;
    bool abandoned = false;
  };
  /// Of the runtime, under its mutex.
  struct Registration {
    std::size_t pins = 0;               ///< threads that use the stream without owning its handle
    bool being_destroyed = false;       ///< is being destroyed: not to be pinned again
    std::list<Drain> abandoned_drains;  ///< drains that no thread has waited for to the end
  } registration;

 private:
  struct CancelMessage;
  struct ReportMessage;
  /// From a thread that waits to enqueue.
  struct RoomRequest : Message {
    std::uint64_t completed = 0;  ///< actions that are to be
    Signal granted;
    RoomRequest* next = nullptr;
  };

  static constexpr std::uint64_t kAny = UINT64_MAX;
  /// Unless kAny, enqueues only as the next action after number `only_after`.
  template <class Fill>
  weir_event enqueue(ActionKind kind, bool with_event, Fill&& fill,
                     std::uint64_t only_after = kAny);
  static std::uint64_t position_of(const weir_event& event) noexcept {
    return event.opaque[1] & ((std::uint64_t{1} << Action::kSequenceBits) - 1);
  }
  void make_room();
  void grant_room() noexcept;
  void fill_compute(Action& action, const weir_compute& compute,
                    std::span<const weir_event> events);
  void fill_transfer(Action& action, const weir_transfer& transfer,
                     std::span<const weir_event> events) const;
  void fill_sync(Action& action, const weir_sync& sync) const;
  static void fill_events(Action& action, std::span<const weir_event> events) noexcept;
  Operand make_operand(weir_buffer* handle, const weir_region& region, weir_access access,
                       const Domain* domain) const;
  const KernelCode& code_of(const weir_kernel& kernel);
  void check_route(const Operand& source, const Operand& target, const Domain* from,
                   const Domain* to) const;
  void check_not_later(const weir_event& event) const;

  void post(Message& message) noexcept;
  void schedule() noexcept;
  void dispatch_inline() noexcept;

  void run_owner_pass() noexcept;
  void advance_transfers() noexcept;
  bool has_call() const noexcept {
    return !memory_ready_.empty() || engine_.has_compute() ||
           (device_ordered_ && engine_.has_transfer());
  }
  bool only_admits() const noexcept;
  Action* next_job() noexcept;
  bool end_if_not_to_run(Action& action) noexcept;
  bool admit_next(Action*& inline_action) noexcept;
  bool is_host_ordered(const Action& action) const noexcept;
  void watch_events(Action& action) noexcept;
  void find_submission(EventWait& wait) noexcept;
  void satisfy(EventWait& wait, const FailureRef& failure) noexcept;
  static void deliver_event(Waiter& waiter, weir_status status, const FailureRef& failure);
  void read_messages() noexcept;
  void take_message(Message& message) noexcept;
  void post_cancel(std::uint64_t until);
  FailureRef make_cancel_reason() const noexcept;
  void cancel_now(const CancelMessage& message) noexcept;
  bool is_below_watermark(const Action& action) const noexcept;
  bool is_cancelled(const Action& action) const noexcept;
  bool end_if_cancelled(Action& action) noexcept;
  void complete_unrun(Action& action) noexcept;
  void write_report(Message& message) noexcept;
  std::string state_of(const Action& action) const;
  std::vector<std::uint64_t> incomplete_events(Action& action) const;
  bool acquire(Action& action) noexcept;
  void release_memory(Action& action) noexcept;
  void start_transfer(Action& action) noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;
  std::string describe_origin() const noexcept;
  void retire(Action& action) noexcept;
  void note_outcome(const Action& action) noexcept;
  void count(const Action& action) noexcept;
  void stamp_ready(Action& action) noexcept;
  void trace_admission(const Action& action) noexcept;
  void trace_order(const Action& action) noexcept;
  std::uint16_t cores_of(const Action& action) const noexcept;
  void trace_end(Action& action) noexcept;

  Place& place_;
  Runtime& runtime_;
  const std::uint64_t serial_;
  const std::string name_;
  const weir_dependence_policy policy_;
  const std::size_t priority_;
  const std::size_t max_in_flight_;
  const bool device_ordered_;     ///< the device orders jobs
  const bool dispatches_inline_;  ///< whoever brings news does what needs no worker
  const std::uint32_t trace_index_;

  // Producers'.
  ActionCache actions_;
  ActionQueue queue_;
  sys::Atomic<std::uint64_t> drains_{0};
  sys::Atomic<std::uint64_t> non_ordering_{0};
  sys::Atomic<std::uint64_t> room_until_{0};  ///< so many may be enqueued for sure
  static constexpr std::size_t kCodeCache = 8;
  struct CachedCode {
    const weir_kernel* kernel = nullptr;
    const KernelCode* code = nullptr;
  };
  std::array<CachedCode, kCodeCache> code_cache_;

  Mailbox mailbox_;
  CancellationWatermark cancellation_watermark_;

  // The owner's.
  alignas(64) Engine engine_;
  ActionList memory_ready_;  ///< calls that waited for memory and have it now
  Progress progress_;
  Counters counters_;
  RoomRequest* room_requests_ = nullptr;
  Unreported unreported_;
  std::uint64_t cancel_until_ = 0;
  FailureRef cancel_reason_;
  std::unique_ptr<History> history_;  ///< while a trace is recorded
};

}  // namespace weir::rt

/// The public handle.
struct weir_stream final : weir::rt::Handle<weir_stream>, weir::rt::Stream {
  static constexpr const char* kNoun = "stream";
  using Stream::Stream;
};
