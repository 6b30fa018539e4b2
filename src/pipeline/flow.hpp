// A running pipeline: a state machine; the threads that run it belong to the caller.
#pragma once

#include <string>

#include "pipeline/flow_worker.hpp"

namespace weir::rt {

/// A pipeline: its parts, its workers and its reports. The program builds it with `graph`, opens
/// `feeds`, and gets the outcome from `completion`. Each part has its own contract, and knows only
/// the context and the parts that it is made with.
class Flow : public FlowContext {
 public:
  /// Throws Error.
  Flow(const std::string& called, const weir_pipeline_options& given);
  ~Flow();

  /// Checks the graph and creates the workers: group_workers[i] in group i. Throws Error.
  void seal(const std::vector<std::size_t>& group_workers);
  std::size_t workers() const noexcept { return workers_.size(); }
  /// Runs a worker until the pipeline ends or the deadline passes, for at least one step. One
  /// thread at a time for each worker.
  void work(std::size_t worker, std::int64_t deadline_ns = sys::kNever) noexcept {
    workers_[worker]->work(deadline_ns);
  }
  void cancel() noexcept {
    const FlowCompletion::Call call(completion);
    completion.stop(WEIR_STATUS_CANCELLED, "the pipeline was cancelled");
  }
  /// Whether it has started and has not ended.
  bool running() const noexcept { return groups.sealed() && !completion.ended(); }

  // Reports. Any thread.
  void get_info(weir_pipeline_info& info, weir_stage_info* stages, std::size_t count);
  /// Fills the state of the stage or tunnel with a number. From the first get_stage() on latencies
  /// are sampled. They throw Error.
  void get_stage(std::size_t number, weir_stage_state& state);
  void get_tunnel(std::size_t number, weir_tunnel_state& state);
  /// Names the stages with items that are not complete: "stage 'a' has 3 items, stage 'b' 1".
  std::string holders();
  /// Grows with every item that is put or complete; 0 before the start.
  std::uint64_t movement() noexcept;

  FlowGraph graph{*this, feeds};
  FlowCounts counts;
  RetainedItems retained{*this};
  Feeds feeds{*this};
  TerminationDetector detector{*this, graph, counts, retained, feeds};

 private:
  weir_stage_info info_of(const Stage& stage);

  std::vector<std::unique_ptr<FlowWorker>> workers_;
};

}  // namespace weir::rt
