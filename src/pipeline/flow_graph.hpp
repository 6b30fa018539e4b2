// The tunnels and stages of a pipeline, and its shape.
#pragma once

#include "pipeline/tunnel.hpp"

namespace weir::rt {

struct FlowContext;
class OffloadExecutor;

/// For each stage, the stages that it puts items for.
using FlowEdges = std::vector<std::vector<std::size_t>>;

/// Stages that can reach each other are one component: they end together.
struct FlowShape {
  std::vector<std::size_t>
      component;             ///< of each stage; edges lead to the same or a larger component
  std::vector<bool> cyclic;  ///< of each component
  std::vector<std::size_t> downstream_first;  ///< all stages; in a component the last added first
};

/// Finds the components (Tarjan).
FlowShape shape_of(const FlowEdges& edges);

/// The stages of one component.
struct Component {
  std::vector<Stage*> stages;
  std::vector<std::size_t> producers;  ///< components
  bool ended = false;                  ///< written by the thread that checks for ends only
};

/// Owns tunnels and stages. One thread builds it; arrange() checks it, and decides how items move
/// and how many workers enter each stage. Afterwards it does not change.
class FlowGraph {
 public:
  FlowGraph(FlowContext& flow, Feeds& feeds) noexcept : flow_(flow), feeds_(feeds) {}

  // Building. They throw Error, having added nothing.
  weir_tunnel* add_tunnel(const weir_tunnel_options& options);
  /// Adds a stage to a group, an index into the argument of arrange(). With an executor, which must
  /// outlive all work, workers of the group only move the stage's items.
  void add_stage(const weir_stage_options& options, std::size_t group,
                 OffloadExecutor* executor = nullptr, std::size_t cores = 1);
  /// Throws Error unless each tunnel has a stage and a producer, each loop gets a first item, and
  /// each batch can be full. Creates the groups of workers: workers[i] in group i. Returns the
  /// components, upstream first.
  std::vector<Component> arrange(const std::vector<std::size_t>& workers);

  const std::vector<Owned<weir_tunnel>>& tunnels() const noexcept { return tunnels_; }
  const std::vector<std::unique_ptr<Stage>>& stages() const noexcept { return stages_; }
  /// Whether the program is notified of ends: then busy workers check for them, too.
  bool reports_ends() const noexcept { return reports_ends_; }
  /// Items of a tunnel that a worker handles at once: fewer of large ones.
  std::size_t most_at_once(const Tunnel& tunnel) const noexcept;
  std::unique_ptr<WorkerBuffer> make_worker_buffer(const Tunnel& tunnel) const;

 private:
  void refuse_when_sealed(const char* what) const;
  Tunnel& own(weir_tunnel* tunnel, const Stage& stage) const;
  FlowEdges checked_edges() const;
  void check_fed(const FlowEdges& edges, const FlowShape& shape) const;
  void check_stages(const FlowShape& shape) const;

  FlowContext& flow_;
  Feeds& feeds_;  ///< of its tunnels
  std::vector<Owned<weir_tunnel>> tunnels_;
  std::vector<std::unique_ptr<Stage>> stages_;
  bool reports_ends_ = false;
};

}  // namespace weir::rt
