// The owner's side of a stream: runs its engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/stream.h>

#include "core/action_pool.hpp"
#include "core/action_queue.hpp"
#include "core/engine.hpp"
#include "core/mailbox.hpp"
#include "core/progress.hpp"
#include "core/unreported.hpp"
#include "stream/awaited_events.hpp"
#include "stream/cancellation.hpp"
#include "stream/in_flight_limit.hpp"
#include "stream/place_base.hpp"
#include "stream/stream_counters.hpp"
#include "stream/stream_tracer.hpp"

namespace weir::rt {

/// Executes the actions of one stream, as an actor.
///
/// One thread at a time, the owner, runs the engine. A thread that posts a message to an executor
/// without owner becomes the owner. Completions of copies, jobs and events arrive as messages;
/// their sender does not touch the executor afterwards.
class Executor : public QueuedStream, private CopySink {
 public:
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  PlaceBase& place() const noexcept { return place_; }
  Domain& domain() const noexcept { return place_.domain(); }
  Context& context() const noexcept { return context_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t serial() const noexcept { return serial_; }

  // Any thread.
  std::uint64_t enqueued() const noexcept { return queue_.pushed(); }
  /// Returns the number of incomplete actions, internal ones included.
  std::uint64_t in_flight() const noexcept {
    // Read first, so that completed <= enqueued.
    const std::uint64_t completed = progress_.completed();
    return enqueued() - completed;
  }
  /// Whether everything enqueued so far is complete.
  bool is_complete() const noexcept { return progress_.completed() == enqueued(); }
  /// Whether everything is complete and nothing failed: then no drain is needed.
  bool completed_without_failure() const noexcept {
    return progress_.completed_without_failure(enqueued());
  }
  /// Says whether a thread owns the executor.
  const Mailbox& mailbox() const noexcept { return mailbox_; }
  /// Returns the failures that no synchronise has reported.
  Unreported& unreported() noexcept { return unreported_; }
  /// Posts a message to the owner, and becomes the owner if there is none.
  void post(Message& message) noexcept {
    if (mailbox_.post(message)) schedule();
  }
  /// Gives back an external action, and starts those that it makes ready, on the calling thread if
  /// the stream has no owner. The caller holds no lock.
  void post_completed_external(Action& action) noexcept;
  /// Gives back an action: `finished` from a thread that does not own the executor, `retry` from a
  /// Residency for an action that waited for memory.
  void post_back(Action& action, Message::Kind kind) noexcept {
    action.message_kind = kind;
    post(action);
  }
  /// EventWait::deliver: posts the wait to the owner of its stream.
  static void deliver_event(Waiter& waiter, weir_status status, const FailureRef& failure);
  /// Sets the failure of an action of the stream.
  void set_failure(Action& action, Outcome outcome) const noexcept;

  // The owner.
  /// Polls for enqueued actions; advance() and release() use the result.
  void poll() noexcept { queue_.poll(); }
  /// Makes progress until there is a call for a worker, which it returns, or nothing to do. With
  /// device ordering it returns copies, too, and the caller must submit all returned actions.
  Action* advance() noexcept;
  /// Marks an action as submitted under this submission id. Adds to `waits` the ids of the jobs
  /// that must complete before it, without duplicates. Throws std::bad_alloc, having done nothing.
  void mark_submitted(Action& action, std::uint64_t number, std::vector<std::uint64_t>& waits);
  /// Whether the action that advance() returned must be finished before the owner releases the
  /// executor.
  bool runs_inline() const noexcept { return engine_.runs_inline(); }
  /// Polls briefly for messages and actions, which costs less than releasing and rescheduling.
  /// Returns whether there are any; false at once if the place has other streams to run.
  bool spin_for_messages() noexcept;
  /// Takes back an action, whose `status` and `failure` are its outcome.
  void finish(Action& action) noexcept;
  /// Called by the thread that uses the device: the action of an event that this stream waits for
  /// was submitted.
  void mark_event_submitted(EventWait& wait, std::uint64_t number) noexcept;
  /// Releases ownership, or puts the executor into the run queue if a worker has something to do
  /// for it. Work that needs no worker is done first.
  void release_or_reschedule() noexcept;
  /// Releases ownership. Returns false if messages or actions have arrived: the caller is then
  /// still the owner.
  bool release() noexcept;

 protected:
  Executor(PlaceBase& place, std::uint64_t serial, std::string name,
           const weir_stream_options& options);

  /// Called by a thread that has become the owner.
  void schedule() noexcept;

 private:
  void run_owner_pass(bool may_copy) noexcept;
  void advance_transfers() noexcept;
  bool has_call() const noexcept { return !memory_ready_.empty() || engine_.has_ready(); }
  Action* next_job() noexcept;
  bool end_if_not_to_run(Action& action) noexcept;
  bool admit_next(Action*& inline_action) noexcept;
  void take_message(Message& message) noexcept;
  void complete_unrun(Action& action) noexcept;
  bool acquire(Action& action) noexcept;
  void start_transfer(Action& action) noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;
  void retire(Action& action) noexcept;

  PlaceBase& place_;
  Context& context_;
  const std::uint64_t serial_;
  const std::string name_;
  const bool device_ordered_;     ///< its device resolves dependences
  const bool dispatches_inline_;  ///< threads that post messages do the work that needs no worker

 protected:
  // Producers push; the owner pops and gives back.
  ActionCache actions_;
  ActionQueue queue_;
  StreamCounters counters_;
  InFlightLimit limit_;
  Mailbox mailbox_;
  Progress progress_;          ///< written by the owner
  Cancellation cancellation_;  ///< of the owner, except for the watermark

 private:
  // Of the owner.
  alignas(64) Engine engine_;
  ActionList memory_ready_;   ///< actions that waited for memory and have it
  unsigned pauses_per_poll_;  ///< of spin_for_messages()
  AwaitedEvents awaited_;
  Unreported unreported_;
  StreamTracer tracer_;
};

/// Completes an external action, once. Any thread. Throws Error unless it is in progress.
void complete_external(Context& context, const weir_event& event, weir_status status,
                       const char* message);

/// Returns one end of a copy: 0 is the source, 1 the target.
CopyEnd end_of_copy(const Context& context, const Action& action, std::size_t end) noexcept;

/// Returns the failure of actions that a stream has cancelled; without memory its message is empty.
FailureRef make_cancel_reason(const std::string& stream, std::uint64_t serial) noexcept;

}  // namespace weir::rt
