// Calls the functions of stages for one worker.
#pragma once

#include <algorithm>
#include <cstdio>
#include <utility>

#include "pipeline/retained_items.hpp"
#include "pipeline/worker_items.hpp"

namespace weir::rt {

/// Adapts the number of items that a worker takes at once from a stage to about 20 microseconds of
/// work, so that clock reads are cheap and idle workers soon get items.
class BatchSize {
 public:
  explicit BatchSize(std::size_t most) noexcept : most_(most) {}

  std::size_t items() const noexcept { return items_; }
  bool slow() const noexcept { return items_ < most_; }
  /// Whether to time the next call: every call, or every 16th when calls with the largest batch are
  /// brief.
  bool due() noexcept { return ++calls_ >= 16 || !brief_; }
  /// Records the duration of a timed call. Returns an estimate of the time of all calls since the
  /// previous timed call.
  std::int64_t note(std::size_t items, std::int64_t duration_ns) noexcept {
    if (duration_ns > 2 * kWanted) {
      items_ = std::max<std::size_t>(items_ / 2, 1);
    } else if (duration_ns < kWanted / 2 && items >= items_) {
      items_ = std::min(2 * items_, most_);
    }
    brief_ = items_ >= most_ && duration_ns < kWanted;
    return duration_ns * std::exchange(calls_, 0);
  }

 private:
  static constexpr std::int64_t kWanted = 20'000;
  const std::size_t most_;
  std::size_t items_ = 1;
  int calls_ = 0;  ///< since the last timed call
  bool brief_ = false;
};

/// The call of a stage, with the message of its failure and the items that it retains.
struct StageCall : weir_batch {
  StageCall(RetainedItems& all, std::size_t index) noexcept : weir_batch{}, all_retained(all) {
    worker = index;
    message[0] = '\0';
  }
  void begin(Stage& stage, const WorkerBuffer::Batch& batch, const Outputs& outputs) noexcept;
  void fail(const char* why) noexcept { std::snprintf(message, sizeof message, "%s", why); }
  /// Retains an item beyond the call. Throws Error.
  weir_item* keep(std::size_t item);
  /// Keeps the retained items among the first `done`; a failed item is not retained, and the items
  /// after it are delivered again.
  void note_retained(std::size_t done) noexcept;

  struct Retained {
    std::size_t index;
    std::uint64_t number;  ///< in RetainedItems
  };
  RetainedItems& all_retained;  ///< of the pipeline
  Stage* stage = nullptr;
  ItemTag tag;
  std::vector<Retained> retained;        ///< by this call
  std::vector<std::uint64_t> unsettled;  ///< by calls that have not settled
  char message[512];
};

/// Runs stages for one worker: calls, then settles. Settling counts the items that the call has
/// put, then the items that it completes, and then moves them on; this order keeps the component of
/// the stage open while an item exists. Only the worker.
class StageRunner {
 public:
  StageRunner(FlowContext& flow, const FlowGraph& graph, RetainedItems& retained,
              WorkerItems& items, WorkerCounts& counts, std::size_t worker);

  /// How many items a call of a stage should get.
  const BatchSize& pace(const Stage& stage) const noexcept { return pace_[stage.index]; }
  /// Runs a stage on items of one tag; after an item that fails, on the rest.
  void run(Stage& stage, const WorkerBuffer::Batch& batch, Outputs& outputs) noexcept;
  /// Returns whether the source has put any items.
  bool run_source(Stage& source) noexcept;
  /// Runs the code for the end of a stage; `epoch` is that of the items that it puts.
  void run_end(Stage& stage, std::uint64_t epoch) noexcept;
  /// Counts the items that a batch has put, then those it has completed. Returns whether it has put
  /// any.
  bool settle(Stage& stage, const WorkerBuffer::Batch& batch, const Outputs& outputs) noexcept;

 private:
  weir_status call(Stage& stage, weir_stage_function function, const WorkerBuffer::Batch& batch,
                   const Outputs& outputs) noexcept;
  std::size_t count_created(const Stage& stage, const Tunnel& tunnel, WorkerBuffer& kept,
                            const ItemTag& tag) noexcept;
  void fail_item(const Stage& stage, const void* item, weir_status status) noexcept;

  FlowContext& flow_;
  WorkerItems& items_;
  WorkerCounts& counts_;
  std::vector<BatchSize> pace_;  ///< by stage
  StageCall call_;
  std::int64_t call_began_ns_ = ItemTag::kNotSampled;  ///< start of a timed call
};

}  // namespace weir::rt
