// Reductions of a task queue.
#pragma once

#include <memory>
#include <vector>

#include "tasks/queue_core.hpp"

namespace weir::rt {

/// Rewrites submitted tasks so that the queue needs no knowledge of reductions.
///
/// A task with access REDUCE gets a partial result instead of its operand. Partial results of a
/// region are assigned round-robin in program order, so the result depends on their number only,
/// not on where or when tasks ran. Partial results are ordinary buffers, and the tasks that
/// initialise and combine them are ordinary tasks. Any thread.
class Reductions {
 public:
  /// `width`: maximum number of partial results of a region.
  Reductions(const QueueProperties& properties, QueueCore& core, std::size_t width)
      : properties_(properties), core_(core), width_(width) {}
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;
  /// The queue is idle.
  ~Reductions();

  /// Whether no region has partial results.
  bool idle() const noexcept { return !any_.load(); }
  /// Whether submit() must be called for the task.
  bool applies_to(const weir_task& task) const noexcept;
  /// Submits a task after the tasks that it needs. Throws Error.
  weir_event submit(const weir_task& task, bool with_event);

  /// Submits the tasks that combine the results of a region of a buffer. Throws.
  void combine(const Buffer& buffer, const Region& region);
  void combine_everything();
  /// Removes the partial results of a buffer.
  void discard(const Buffer& buffer) noexcept;
  /// Removes all partial results, and calls cancel() before any other task is submitted here.
  template <class Cancel>
  void discard_all(Cancel&& cancel) noexcept {
    const sys::Lock lock(mutex_);
    drop(nullptr);
    cancel();
  }
  /// Called when failures are forgotten: partial results can be reused.
  void clear_poison() noexcept;

 private:
  /// Memory of a partial result.
  struct Partial {
    weir_buffer* buffer = nullptr;
    std::uint64_t bytes = 0;
    weir_event read = WEIR_EVENT_INIT;  ///< event of the last task that reads it
    bool dropped = false;               ///< the outcome of its tasks is unknown
  };
  /// A region with partial results.
  struct OpenRegion {
    weir_buffer* buffer = nullptr;
    weir_region given{};
    Region region;
    const weir_kernel* combine = nullptr;
    const weir_kernel* init = nullptr;
    std::vector<Partial> partials;
    std::size_t round_robin = 0;
  };
  struct Combination;

  void drop(const Buffer* buffer) noexcept WEIR_REQUIRES(mutex_);
  void check(const weir_task& task) WEIR_REQUIRES(mutex_);
  weir_operand partial_for(const weir_task& task, const weir_operand& operand)
      WEIR_REQUIRES(mutex_);
  OpenRegion& open(const weir_task& task, const weir_operand& operand, const Region& region)
      WEIR_REQUIRES(mutex_);
  void add_partial(OpenRegion& open) WEIR_REQUIRES(mutex_);
  Partial take_spare(std::uint64_t bytes) WEIR_REQUIRES(mutex_);
  bool fit(const Partial& spare, std::uint64_t bytes) const;
  void combine_overlapping(const Buffer& buffer, const Region& region) WEIR_REQUIRES(mutex_);
  void combine_all(OpenRegion& open) WEIR_REQUIRES(mutex_);
  void enqueue_combine(OpenRegion& open, const weir_operand& target) WEIR_REQUIRES(mutex_);
  void note_open() noexcept WEIR_REQUIRES(mutex_) { any_.store(!open_.empty()); }

  const QueueProperties& properties_;
  QueueCore& core_;
  const std::size_t width_;
  sys::Mutex mutex_;
  std::vector<std::unique_ptr<OpenRegion>> open_ WEIR_GUARDED_BY(mutex_);
  std::vector<Partial> spare_ WEIR_GUARDED_BY(mutex_);
  /// Number of partial results; spare_ has capacity for all.
  std::size_t made_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<weir_operand> operands_ WEIR_GUARDED_BY(mutex_);
  Task probe_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<bool> any_{false};  ///< whether there are open regions; any thread
};

}  // namespace weir::rt
