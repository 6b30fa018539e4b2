// The loop of a worker of a pipeline: find items, run stages, move items, sleep.
#pragma once

#include "pipeline/termination_detector.hpp"

namespace weir::rt {

/// A worker takes items in this order: its own buffers, downstream stages first; rings, downstream
/// first; sources; small batches for devices. When other workers are idle it moves the older half
/// of its items to the ring. It takes nothing from a ring for a stage while it keeps items that
/// this stage has put for later stages: rings fill when these are slow, and producers wait
/// (backpressure).
///
/// One thread at a time.
class alignas(64) FlowWorker {
 public:
  FlowWorker(FlowContext& flow, const FlowGraph& graph, RetainedItems& retained,
             TerminationDetector& detector, WorkerGroup& group, WorkerCounts& counts,
             std::size_t index);

  /// Runs until the pipeline ends or the deadline passes, for at least one step.
  void work(std::int64_t deadline_ns) noexcept;

 private:
  bool step() noexcept;
  bool run_kept() noexcept;
  bool run_kept(Stage& stage) noexcept;
  bool run_waiting() noexcept;
  bool run_waiting(Stage& stage) noexcept;
  std::size_t take(Stage& stage) noexcept;
  void run_taken(Stage& stage, std::size_t count, Outputs& outputs) noexcept;
  bool run_source() noexcept;
  bool load_small_batch() noexcept;
  bool can_run(const Stage& source) const noexcept;
  bool enter(Stage& stage) const noexcept { return !stage.limited || stage.permit.try_enter(); }
  void leave(Stage& stage) noexcept;
  bool send_ordered() noexcept;
  bool send_ordered(Stage& stage) noexcept;
  void share() noexcept;

  void spin_then_park() noexcept;
  void advance_time() noexcept;
  void park() noexcept;
  bool has_work() const noexcept;

  FlowContext& flow_;
  const FlowGraph& graph_;
  TerminationDetector& detector_;
  WorkerGroup& group_;
  WorkerItems items_;
  StageRunner runner_;
  ItemMemory taken_;  ///< a batch taken from a ring, or from a worker buffer that grows meanwhile
  std::vector<ItemTag> taken_tags_;
  std::vector<Stage*> held_;  ///< stages whose permit the worker still holds after its call
  std::size_t next_source_ = 0;
  unsigned passes_ = 0;
};

}  // namespace weir::rt
