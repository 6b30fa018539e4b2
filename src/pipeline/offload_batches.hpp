// The batches of a stage that an executor runs in place of workers.
#pragma once

#include "base/plain.hpp"
#include "pipeline/batch_target.hpp"
#include "pipeline/flow_context.hpp"
#include "pipeline/offload_executor.hpp"

namespace weir::rt {

/// Loads batches, launches them, and collects their results. Batches are in flight in the blocks of
/// the stage's Reorder, one for each slot of the executor: one thread at a time loads, and one
/// collects, in the order of loading. A batch is launched when it has as many items as BatchTarget
/// wants, or, when no worker has other work, as many as are worth a launch, or fewer when fewer
/// than two are in flight; it has items of one epoch.
class OffloadBatches {
 public:
  /// Attaches itself to the executor, which must outlive all work. Throws Error for a stage that
  /// cannot have one, std::bad_alloc.
  OffloadBatches(FlowContext& flow, Stage& stage, OffloadExecutor& executor);

  const OffloadExecutor& executor() const noexcept { return executor_; }
  /// Which batches to launch: only those with as many items as wanted, or smaller ones, too. A
  /// worker launches smaller ones when it finds nothing else to do.
  enum class Load { full, any };
  /// Whether load_from() a buffer with some items, or load_waiting(), may launch a batch.
  bool can_load(std::size_t items, Load wanted) const noexcept;
  bool can_load_waiting(Load wanted) const noexcept;
  /// Launches a batch of items from the ring. Returns whether it launched any.
  bool load_waiting(Load wanted) noexcept;
  /// The same with items that the calling worker keeps, the newest first.
  bool load_from(WorkerBuffer& kept, Load wanted) noexcept;
  /// Called by the executor when a batch is complete. Reports a failed batch at once, because all
  /// workers may be in calls that only the end of the pipeline ends.
  void on_complete(std::size_t slot) noexcept;
  /// Puts the results of a complete batch, unless it failed. The caller counts them.
  void collect(const Reorder::Block& block, const Outputs& outputs) noexcept;
  /// Called when the results of a batch have been moved on.
  void release(const Reorder::Block& block) noexcept { executor_.release(slot_of(block)); }
  /// Called when all batches are complete. Throws what the executor throws.
  void end() {
    executor_.keep_costs(target_.costs());
    executor_.end();
  }

  std::uint64_t busy_ns() const noexcept { return busy_ns_.load(std::memory_order_relaxed); }
  /// Items of failed batches.
  std::uint64_t failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  std::size_t slot_of(const Reorder::Block& block) const noexcept {
    return static_cast<std::size_t>(&block - stage_.reorder->blocks().data());
  }
  std::size_t waiting() const noexcept;
  std::size_t share_of(std::size_t items) const noexcept;
  std::size_t fill(Reorder::Block& block) noexcept;
  void fill_with_one_epoch(Reorder::Block& block, unsigned char* items,
                           std::size_t wanted) noexcept;
  void note_taken(std::size_t items) noexcept;
  bool waits_for_workers() noexcept;
  bool launch(Reorder::Block* block) noexcept;
  void fail(const Reorder::Block& block, const Outcome& outcome) noexcept;

  FlowContext& flow_;
  Stage& stage_;
  OffloadExecutor& executor_;
  BatchTarget target_;
  /// In a pipeline with epochs: items taken from the ring with items of an earlier epoch, for the
  /// next batch. Only the loading thread; others read `leftover_`.
  std::unique_ptr<unsigned char[]> leftover_items_;
  std::vector<ItemTag> leftover_tags_;
  sys::Atomic<std::size_t> leftover_{0};
  sys::Plain<std::uint64_t> taken_ = 0;
  sys::Atomic<std::size_t> in_flight_{0};  ///< items in batches that are not collected
  static constexpr std::int64_t kNotWaiting = INT64_MIN;
  /// When a worker first saw items that wait for an idle device.
  sys::Atomic<std::int64_t> waiting_since_ns_{kNotWaiting};
  sys::Atomic<std::int64_t> last_batch_ns_{INT64_MIN};  ///< end of the last batch
  sys::Atomic<std::uint64_t> busy_ns_{0};               ///< while a batch was in flight
  sys::Atomic<std::uint64_t> failed_{0};
};

}  // namespace weir::rt
