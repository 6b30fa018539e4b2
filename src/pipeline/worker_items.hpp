// The items that one worker keeps.
#pragma once

#include <algorithm>

#include "pipeline/flow_graph.hpp"
#include "pipeline/tunnel_access.hpp"

namespace weir::rt {

/// A buffer for each tunnel, which the outlets of the worker's stages append to. Most items stay
/// with the worker that made them; they move to the ring of the tunnel when there is room and the
/// worker cannot, or another should, work on them. Only the worker.
class WorkerItems {
 public:
  WorkerItems(const FlowGraph& graph, const TunnelAccess& access, WorkerCounts& counts)
      : graph_(graph), access_(access), counts_(counts) {
    for (const auto& tunnel : graph.tunnels())
      buffers_.push_back(graph.make_worker_buffer(*tunnel));
    for (const auto& stage : graph.stages()) {
      Outputs& outputs = outputs_.emplace_back();
      for (const Tunnel* tunnel : stage->outputs) outputs.add(of(*tunnel));
    }
  }

  WorkerBuffer& of(const Tunnel& tunnel) const noexcept { return *buffers_[tunnel.index]; }
  /// Where the calls of a stage put items.
  Outputs& outputs(const Stage& stage) noexcept { return outputs_[stage.index]; }

  /// Moves items to the ring of their tunnel, as far as there is room. Returns whether any moved.
  bool flush(Tunnel& tunnel, WorkerBuffer& kept) noexcept {
    TunnelCounters& counters = counts_.tunnels[tunnel.index];
    bool moved = false;
    while (!kept.empty()) {
      const WorkerBuffer::Batch batch = kept.oldest();
      const std::size_t done =
          access_.offer(counters, counts_.epochs.get(), tunnel, {batch.items, batch.tag},
                        batch.count, [](std::size_t) {});
      if (done == 0) break;
      kept.drop_oldest(done);
      moved = true;
    }
    return moved;
  }
  bool flush_all() noexcept {
    bool moved = false;
    for (const auto& tunnel : graph_.tunnels()) moved = flush(*tunnel, of(*tunnel)) || moved;
    return moved;
  }
  /// Whether a ring has room for items that the worker keeps.
  bool can_flush() const noexcept {
    return std::any_of(graph_.tunnels().begin(), graph_.tunnels().end(), [&](const auto& tunnel) {
      return !of(*tunnel).empty() && tunnel->ring.has_room();
    });
  }

  bool empty() const noexcept {
    return std::all_of(buffers_.begin(), buffers_.end(),
                       [](const auto& each) { return each->empty(); });
  }
  /// Whether the worker keeps items that a stage has put into an order-preserving output.
  bool keeps_in_order(const Stage& stage) const noexcept {
    return std::any_of(stage.order_preserving.begin(), stage.order_preserving.end(),
                       [&](const Tunnel* tunnel) { return !of(*tunnel).empty(); });
  }
  /// Whether the worker keeps items that a stage has put for stages of other components.
  bool keeps_for_others(const Stage& stage) const noexcept {
    return std::any_of(stage.outputs.begin(), stage.outputs.end(), [&](const Tunnel* tunnel) {
      return tunnel->stage->component != stage.component && !of(*tunnel).empty();
    });
  }

 private:
  const FlowGraph& graph_;
  const TunnelAccess& access_;
  WorkerCounts& counts_;
  std::vector<std::unique_ptr<WorkerBuffer>> buffers_;  ///< by tunnel
  std::vector<Outputs> outputs_;                        ///< by stage
};

}  // namespace weir::rt
