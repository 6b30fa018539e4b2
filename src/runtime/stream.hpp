// Streams: producers, the engine and its owner.
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
class Context;
class StreamReport;

/// Notified of the completion of an action, whose slot and times are still valid then.
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
  /// Returns one end of a copy: 0 is the source, 1 the target.
  CopyEnd end_of_copy(const Action& action, std::size_t end) const noexcept;
  Domain& domain() const noexcept { return place_.domain(); }
  Context& context() const noexcept { return context_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t serial() const noexcept { return serial_; }
  std::size_t priority() const noexcept { return priority_; }

  /// Backpressure, before a program thread enqueues: at max_in_flight incomplete actions it makes
  /// progress and waits until an eighth of them is complete. Does not wait in a kernel or a
  /// callback.
  void await_room() {
    if (queue_.pushed() < room_until_.load(std::memory_order_relaxed)) [[likely]]
      return;
    make_room();
  }
  std::size_t max_in_flight() const noexcept { return max_in_flight_; }

  // Any thread. They throw Error, having enqueued nothing. They create an event if `with_event`.
  /// Ready actions of a higher `priority`, -1 to 1, run before others of the stream.
  weir_event compute(const weir_compute& compute, bool with_event, int priority = 0);
  weir_event transfer(const weir_transfer& transfer, bool with_event);
  weir_event sync(const weir_sync& sync, bool with_event);

  // For internal queues. The actions themselves wait for events of other streams.
  /// The task number up to which calls of a queue are cancelled, checked when a call becomes ready.
  /// Copies run, and the order stays. All places of a queue share one watermark: otherwise a
  /// successor of a cancelled task could run on another place.
  struct CancellationWatermark {
    /// Calls up to this number are cancelled; null: none.
    const sys::Atomic<std::uint64_t>* until = nullptr;
    bool by_task = false;  ///< counts tasks instead of actions
  };
  /// Called before anything is enqueued.
  void set_cancellation_watermark(const CancellationWatermark& watermark) noexcept {
    cancellation_watermark_ = watermark;
  }
  /// Enqueues a kernel call for task `number`, and a watcher that is notified of its completion.
  /// With `timed` the watcher finds the call's times in its slot.
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
  /// The same for a buffer in host memory.
  weir_event clear_poison_on_host(const weir_operand& operand);

  /// Enqueues a barrier whose event ends with the stream's first failure. The stream then forgets
  /// that failure, unless the drain was abandoned.
  weir_event drain(DrainFate fate = DrainFate::open);
  /// Makes the stream forget the failure with which an abandoned drain has ended, when the program
  /// sees it. Returns false, and does nothing, if anything was enqueued since.
  bool forget_failure_of(const weir_event& drain);
  /// Whether the event's action is the last one enqueued.
  bool is_last(const weir_event& event) const noexcept { return enqueued() == position_of(event); }
  /// Enqueues a marker: its event completes when everything enqueued before has completed.
  weir_event mark();
  void cancel();
  /// Cancels everything enqueued, now and later.
  void cancel_permanently();
  /// Asks the owner to report what the actions wait for. Throws std::bad_alloc.
  void request_report(std::shared_ptr<StreamReport> report);

  /// Whether everything enqueued so far is complete.
  bool is_complete() const noexcept { return progress_.completed() == enqueued(); }
  /// Whether everything is complete and nothing failed: then no drain is needed.
  bool completed_without_failure() const noexcept {
    return progress_.completed_without_failure(enqueued());
  }
  /// Whether no thread owns the stream.
  bool has_no_owner() const noexcept { return mailbox_.has_no_owner(); }
  /// Calls meanwhile() until no thread owns the stream. The caller knows that no message will
  /// arrive.
  template <class Meanwhile>
  void wait_until_no_owner(Meanwhile&& meanwhile) const noexcept {
    mailbox_.wait_until_no_owner(meanwhile);
  }

  /// Returns the failures that no synchronise has reported.
  Unreported& unreported() noexcept { return unreported_; }

  std::uint64_t enqueued() const noexcept { return queue_.pushed(); }
  /// Returns the number of incomplete actions, internal ones included.
  std::uint64_t in_flight() const noexcept {
    const std::uint64_t completed =
        progress_.completed();  // read first, so that completed <= enqueued
    return enqueued() - completed;
  }

  /// Statistics, written by the owner.
  struct Counters {
    sys::Atomic<std::uint64_t> failed{0}, h2d{0}, d2h{0}, d2d{0}, elided{0};
    sys::Atomic<std::uint64_t> drained{0};  ///< drains among the completed actions
  };
  /// Adds the statistics of the program's actions; internal drains do not count.
  void add_to(weir_stats& stats) const noexcept;
  /// Returns the number of markers and fences among the enqueued actions.
  std::uint64_t non_ordering_count() const noexcept {
    return non_ordering_.load(std::memory_order_relaxed);
  }

  // Of the owner.
  /// Polls for enqueued actions; advance() and release() use the result.
  void poll() noexcept { queue_.poll(); }
  /// Makes progress until there is a call for a worker, which it returns, or nothing to do. With
  /// device ordering it returns copies, too, and the caller must submit all returned actions.
  Action* advance() noexcept;
  /// Marks an action as submitted under this submission id. Adds to `waits` the ids of the jobs
  /// that must complete before it, without duplicates. Throws std::bad_alloc, having done nothing.
  void mark_submitted(Action& action, std::uint64_t number, std::vector<std::uint64_t>& waits);
  /// Whether the action that advance() returned must be finished before the owner releases the
  /// stream.
  bool runs_inline() const noexcept { return engine_.runs_inline(); }
  /// Polls briefly for messages, which costs less than releasing and rescheduling the stream.
  /// Returns whether there are any.
  bool spin_for_messages() noexcept;
  /// Whether there may be more work for a worker now.
  bool has_more() noexcept;
  /// Takes back an action, whose `status` and `failure` are its outcome.
  void finish(Action& action) noexcept;
  /// Called by the thread that uses the device: the action of an event that this stream waits for
  /// was submitted.
  void mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept;
  /// Releases ownership, or puts the stream into the run queue if a worker has something to do for
  /// it. Work that needs no worker is done first.
  void release_or_reschedule() noexcept;
  /// Releases ownership. Returns false if messages or actions have arrived: the caller is then
  /// still the owner.
  bool release() noexcept;

  // Any thread.
  /// Takes back a call from a thread that does not own the stream.
  void post_finished(Action& action) noexcept {
    action.message_kind = Message::Kind::finished;
    post(action);
  }
  /// Sets the failure of an action of the stream.
  void set_failure(Action& action, Outcome outcome) const noexcept;
  /// Called by a Residency for an action that waited for memory.
  static void retry(Action& action);

  sys::Plain<Stream*> next_in_queue = nullptr;  ///< link of the place's run queue

  /// A drain of a synchronise.
  struct Drain {
    weir_event event = WEIR_EVENT_INIT;
    Stream* stream = nullptr;
    bool abandoned = false;
  };
  /// Of the runtime, guarded by its mutex.
  struct Registration {
    std::size_t pins = 0;               ///< threads that use the stream without owning its handle
    bool being_destroyed = false;       ///< being destroyed: must not be pinned again
    std::list<Drain> abandoned_drains;  ///< drains whose waiting threads timed out
  } registration;

 private:
  struct CancelMessage;
  struct ReportMessage;
  /// From a thread that waits to enqueue.
  struct RoomRequest : Message {
    std::uint64_t completed = 0;  ///< number of actions that must be complete
    Signal signal;
    RoomRequest* next = nullptr;
  };

  static constexpr std::uint64_t kAny = UINT64_MAX;
  /// Unless `only_after` is kAny, enqueues only if action number `only_after` is the last one.
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
  Context& context_;
  const std::uint64_t serial_;
  const std::string name_;
  const weir_dependence_policy policy_;
  const std::size_t priority_;
  const std::size_t max_in_flight_;
  const bool device_ordered_;     ///< its device resolves dependences
  const bool dispatches_inline_;  ///< threads that post messages do the work that needs no worker
  const std::uint32_t trace_index_;

  // Of the producers.
  ActionCache actions_;
  ActionQueue queue_;
  sys::Atomic<std::uint64_t> drains_{0};
  sys::Atomic<std::uint64_t> non_ordering_{0};
  sys::Atomic<std::uint64_t> room_until_{0};  ///< enqueueing up to this number needs no wait
  static constexpr std::size_t kCodeCache = 8;
  struct CachedCode {
    const weir_kernel* kernel = nullptr;
    const KernelCode* code = nullptr;
  };
  std::array<CachedCode, kCodeCache> code_cache_;

  Mailbox mailbox_;
  CancellationWatermark cancellation_watermark_;

  // Of the owner.
  alignas(64) Engine engine_;
  ActionList memory_ready_;  ///< memory-ready list
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
