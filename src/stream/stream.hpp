// Streams: where producers enqueue actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>

#include <weir/stream.h>

#include "base/handle.hpp"
#include "core/action.hpp"
#include "stream/action_builder.hpp"
#include "stream/action_recorder.hpp"
#include "stream/executor.hpp"

namespace weir::rt {

class StreamReport;

/// Notified of the completion of an action, whose slot and times are still valid then.
struct ActionWatcher : Waiter {
  const Action* action = nullptr;
};

/// A FIFO of actions, and the executor that runs them. Any thread enqueues; producers share one
/// lock.
class Stream : public Executor {
 public:
  Stream(PlaceBase& place, std::uint64_t serial, std::string name,
         const weir_stream_options& options);

  /// Backpressure, before a program thread enqueues: at max_in_flight incomplete actions it makes
  /// progress and waits until an eighth of them is complete. Does not wait in a kernel or a
  /// callback.
  void await_room() {
    if (limit_.has_room(queue_.pushed())) [[likely]]
      return;
    make_room();
  }
  std::size_t max_in_flight() const noexcept { return limit_.most(); }

  // They throw Error, having enqueued nothing. They create an event if `with_event`.
  /// Ready actions of a higher `priority`, -1 to 1, run before others of the stream.
  weir_event compute(const weir_compute& compute, bool with_event, int priority = 0);
  weir_event transfer(const weir_transfer& transfer, bool with_event);
  weir_event sync(const weir_sync& sync, bool with_event);
  /// Its event is that with which complete_external() completes the action.
  weir_event external(const weir_external& external, bool on_host = false);

  /// Records what is enqueued from now on. Returns false if a recorder is at work already.
  bool begin_recording(ActionRecorder& recorder);
  void end_recording();
  bool is_recorded();

  // For internal queues. The actions themselves wait for events of other streams.
  /// Called before anything is enqueued.
  void set_cancellation_watermark(const CancellationWatermark& watermark) noexcept {
    cancellation_.set_watermark(watermark);
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
  void cancel() { post_cancel(enqueued()); }
  /// Cancels everything enqueued, now and later.
  void cancel_permanently() { post_cancel(UINT64_MAX); }
  /// Asks the owner to report what the actions wait for. Throws std::bad_alloc.
  void request_report(std::shared_ptr<StreamReport> report);

  /// Adds the statistics of the program's actions; internal drains do not count.
  void add_to(weir_stats& stats) const noexcept {
    counters_.add_to(stats, enqueued(), progress_.completed());
  }
  /// Returns the number of markers and fences among the enqueued actions.
  std::uint64_t non_ordering_count() const noexcept { return counters_.non_ordering(); }

  /// A drain of a synchronise.
  struct Drain {
    weir_event event = WEIR_EVENT_INIT;
    Stream* stream = nullptr;
    bool abandoned = false;
  };
  /// Of the registry, guarded by its mutex.
  struct Registration {
    bool being_destroyed = false;       ///< being destroyed: must not be pinned again
    std::list<Drain> abandoned_drains;  ///< drains whose waiting threads timed out
  } registration;
  std::size_t pins = 0;  ///< threads that use it without owning its handle; guarded likewise

 private:
  static constexpr std::uint64_t kAny = UINT64_MAX;
  /// Unless `only_after` is kAny, enqueues only if action number `only_after` is the last one.
  template <class Fill>
  weir_event enqueue(ActionKind kind, bool with_event, Fill&& fill,
                     std::uint64_t only_after = kAny);
  static std::uint64_t position_of(const weir_event& event) noexcept {
    return event.opaque[1] & ((std::uint64_t{1} << Action::kSequenceBits) - 1);
  }
  void make_room();
  void post_cancel(std::uint64_t until);

  ActionBuilder builder_;  ///< of the producer that holds the lock
};

}  // namespace weir::rt

/// The public handle.
struct weir_stream final : weir::rt::Handle<weir_stream>, weir::rt::Stream {
  static constexpr const char* kNoun = "stream";
  using Stream::Stream;
};
