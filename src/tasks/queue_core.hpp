// The two kinds of task queue behind one interface.
#pragma once

#include <span>
#include <string>

#include "tasks/queue_task.hpp"

namespace weir::rt {

/// What a queue does with its tasks after Reductions has rewritten them. A queue makes one of the
/// two kinds and keeps it. Any thread; functions that are not noexcept throw Error.
class QueueCore {
 public:
  QueueCore(const QueueProperties& properties, QueuePlaces& places) noexcept
      : properties_(properties), places_(places) {}
  virtual ~QueueCore() = default;

  /// Checks an operand of the program.
  NamedUse check_operand(const weir_operand& operand) const;
  /// Checks a task, and fills in `task`. Throws what submitting it would throw.
  void fill_call(Task& task, const weir_task& given) const;

  /// At the bound of tasks in flight, waits until a part of them is complete. Does not wait in a
  /// kernel or a callback: other tasks may wait for that one.
  virtual void await_room() = 0;
  /// Submits a task without reductions. The caller calls progress() afterwards, without a lock.
  virtual weir_event submit(const weir_task& task, bool with_event) = 0;
  virtual void progress() noexcept {}
  /// Enqueues an access by the program; without a buffer, to all of host memory.
  virtual weir_event enqueue_access(const weir_operand& operand) = 0;
  /// Waits until the program may access a region.
  WaitResult acquire(const weir_operand& operand, std::int64_t timeout_ns) {
    return await_access(request_access(operand), timeout_ns);
  }
  /// Contract of weir_queue_synchronize().
  virtual WaitResult synchronize(std::int64_t timeout_ns) = 0;
  /// Cancels the tasks submitted so far. The caller calls progress() afterwards.
  virtual void cancel() noexcept = 0;
  /// Waits until all tasks are complete and host memory has all contents. Keeps failures. Returns
  /// false at the deadline.
  virtual bool await_end(std::int64_t deadline_ns) = 0;
  /// Waits for the tasks that use a buffer, writes their results back and removes its pieces.
  virtual void release(weir_buffer&) noexcept {}
  /// Fills in the counts of tasks, the remarks, and the shares of the first places.
  virtual void get_info(weir_queue_info& info, std::span<weir_queue_share> shares) = 0;

  // For the watchdog, as in Queue.
  virtual std::uint64_t submitted() const noexcept { return 0; }
  virtual std::uint64_t completed() const noexcept { return 0; }
  virtual std::string report(std::int64_t) { return {}; }

 protected:
  /// Returns the sequence number of the newest task or access.
  virtual std::uint64_t newest() const noexcept = 0;
  /// Enqueues an access and returns its event. If the program repeats the last one, which timed
  /// out, it gets the same event again, so that repeated short waits succeed.
  weir_event request_access(const weir_operand& operand);
  /// Waits for the event of an access. After a failure a repeated access is a new one.
  WaitResult await_access(const weir_event& event, std::int64_t timeout_ns);

  const QueueProperties& properties_;
  QueuePlaces& places_;

 private:
  std::uint64_t places_for(const Task& task, const weir_task& given) const;

  struct LastAccess {
    NamedUse use;
    weir_event event = WEIR_EVENT_INIT;  ///< null: none
  };
  SpinLock last_lock_;
  LastAccess last_ WEIR_GUARDED_BY(last_lock_);
};

/// A queue with one place, which works in host memory: forwards tasks to the stream of that place.
class DirectQueue final : public QueueCore {
 public:
  DirectQueue(const QueueProperties& properties, QueuePlaces& places) noexcept;

  /// Whether the stream can run the task as an ordinary action, by submit_plain().
  static bool is_plain(const weir_task& task) noexcept;
  weir_event submit_plain(const weir_task& task, bool with_event);

  Stream& stream() const noexcept { return stream_; }
  void await_room() override { stream_.await_room(); }
  weir_event submit(const weir_task& task, bool with_event) override;
  weir_event enqueue_access(const weir_operand& operand) override;
  WaitResult synchronize(std::int64_t timeout_ns) override;
  void cancel() noexcept override { cancelled_until_.store(newest()); }
  bool await_end(std::int64_t deadline_ns) override;
  void get_info(weir_queue_info& info, std::span<weir_queue_share> shares) override;

 private:
  std::uint64_t newest() const noexcept override { return stream_.enqueued(); }

  weir_stream& stream_;
  sys::Atomic<std::uint64_t> cancelled_until_{0};  ///< cancellation watermark, of actions
};

}  // namespace weir::rt
