// A task queue that binds its tasks to places.
#pragma once

#include <set>

#include "tasks/queue_binder.hpp"
#include "tasks/queue_core.hpp"

namespace weir::rt {

/// A queue over several places, or over a device.
///
/// Producers append tasks; streams append completions to a list. A thread that adds something tries
/// the combining lock; its holder, the owner, binds all tasks that can be bound. An access by the
/// program is bound at once if no deferred task uses its region. Waiters of tasks are notified
/// after the unlock.
class BindingQueue final : public QueueCore {
 public:
  BindingQueue(const QueueProperties& properties, const weir_queue_options& options,
               QueuePlaces& places, std::unique_ptr<Policy> policy, Unreported& unreported);
  /// Completes what await_end() has not, and closes the places.
  ~BindingQueue() override;

  void await_room() override;
  weir_event submit(const weir_task& task, bool with_event) override;
  /// Takes the lock and does all pending work, unless another thread holds the lock.
  void progress() noexcept override;
  weir_event enqueue_access(const weir_operand& operand) override;
  WaitResult synchronize(std::int64_t timeout_ns) override;
  void cancel() noexcept override;
  bool await_end(std::int64_t deadline_ns) override;
  void release(weir_buffer& buffer) noexcept override;
  void get_info(weir_queue_info& info, std::span<weir_queue_share> shares) override;

  std::uint64_t submitted() const noexcept override { return submissions_.submitted(); }
  std::uint64_t completed() const noexcept override { return submissions_.completed(); }
  std::string report(std::int64_t deadline_ns) override;

 private:
  class Owner;
  struct Bound final : BoundTasks {
    /// Throws std::bad_alloc.
    explicit Bound(BindingQueue& owner)
        : BoundTasks(owner.properties_.registry, on_end), queue(owner) {}
    /// At the end of a task: adds it to the completion list, and makes the queue progress.
    static void on_end(Waiter& waiter, weir_status status, const FailureRef& failure);

    BindingQueue& queue;
  };

  std::uint64_t newest() const noexcept override { return submissions_.made(); }
  void await_calls() noexcept;

  Unreported& unreported_;
  SubmissionQueue submissions_;
  Bound bound_;
  CombiningLock lock_;
  TaskBinder binder_ WEIR_GUARDED_BY(lock_);
  std::set<std::string> logged_remarks_ WEIR_GUARDED_BY(lock_);
};

}  // namespace weir::rt
