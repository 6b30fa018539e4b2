// Task queues: one sequential program over all places.
#pragma once

#include <memory>
#include <optional>

#include "base/handle.hpp"
#include "tasks/queue_core.hpp"
#include "tasks/queue_reductions.hpp"

namespace weir::rt {

class Policy;
class Registry;

/// What a program sees of a task queue: rewrites reductions, and hands everything to the kind of
/// queue that its places allow. Any thread.
class Queue {
 public:
  /// Returns the name of the policy that the options ask for.
  static const char* policy_of(const weir_queue_options& options) noexcept {
    return options.policy != nullptr ? options.policy : "finish";
  }

  /// `policy` is of the name policy_of(options).
  Queue(Registry& registry, std::uint64_t serial, const weir_queue_options& options,
        std::unique_ptr<Policy> policy);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  /// Waits for all tasks.
  ~Queue();

  Registry& registry() const noexcept { return properties_.registry; }
  const std::string& name() const noexcept { return properties_.name; }
  std::uint64_t serial() const noexcept { return properties_.serial; }

  // Called by the program. They throw Error.
  weir_event submit(const weir_task& task, bool with_event);
  /// Combines what is being reduced, and returns the stream that gets all tasks, for a recording of
  /// them. Throws Error{unsupported} if the queue binds tasks to places.
  Stream& stream_to_record();
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
  std::uint64_t submitted() const noexcept { return core_->submitted(); }
  std::uint64_t completed() const noexcept { return core_->completed(); }
  /// Returns a line for each deferred task, "" if there is none. Waits until the deadline for the
  /// binding thread, and binds nothing itself, because a policy may be code of the program.
  std::string report(std::int64_t deadline_ns) { return core_->report(deadline_ns); }

  std::size_t pins = 0;  ///< threads that use it without owning its handle; guarded by the runtime

 private:
  bool await_end(std::int64_t deadline_ns);
  void combine(weir_buffer* buffer, const weir_region& region, weir_access access);

  const QueueProperties properties_;
  QueuePlaces places_;
  Unreported unreported_;
  std::unique_ptr<QueueCore> core_;
  DirectQueue* direct_ = nullptr;  ///< the core, if it is of this kind
  std::optional<Reductions> reductions_;
};

}  // namespace weir::rt

/// The public handle.
struct weir_queue final : weir::rt::Handle<weir_queue>, weir::rt::Queue {
  static constexpr const char* kNoun = "queue";
  using Queue::Queue;
};
