#include "pipeline/flow_graph.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "pipeline/flow_context.hpp"
#include "pipeline/offload_batches.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::size_t kUsualCapacity = 1024, kMostCapacity = std::size_t{1} << 30;
constexpr std::size_t kOrderedWindow = 64;  // batches
constexpr std::size_t kMostItemBytes = std::size_t{1} << 24;
constexpr std::size_t kMostBatchBytes = std::size_t{1} << 18;
constexpr std::size_t kUsualTunnelBytes = std::size_t{1} << 24;

std::size_t capacity_of(const weir_tunnel_options& options) {
  if (options.overflow == WEIR_OVERFLOW_KEEP_LATEST) return 1;
  if (options.capacity > 0) return options.capacity;
  return std::clamp<std::size_t>(kUsualTunnelBytes / options.item_bytes, 2, kUsualCapacity);
}

std::string name_or(const char* given, const char* noun, std::size_t number) {
  return given != nullptr ? given : fmt::format("{} {}", noun, number);
}

/// Makes all items to and from a stage go through rings.
void queue_up(Stage& stage) noexcept {
  stage.input->queued = true;
  for (Tunnel* tunnel : stage.outputs) tunnel->queued = true;
}

/// Tarjan's search. It finds components downstream first. The depth is the number of stages.
struct Search {
  explicit Search(const FlowEdges& all)
      : edges(all), number(all.size(), kNone), low(all.size()), component(all.size(), kNone) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (number[i] == kNone) visit(i);
    }
  }

  void visit(std::size_t stage) {
    number[stage] = low[stage] = visited++;
    open.push_back(stage);
    for (const std::size_t next : edges[stage]) {
      if (number[next] == kNone) {
        visit(next);
        low[stage] = std::min(low[stage], low[next]);
      } else if (component[next] == kNone) {
        low[stage] = std::min(low[stage], number[next]);
      }
    }
    if (low[stage] == number[stage]) close(stage);
  }
  void close(std::size_t root) {
    std::size_t stage = kNone;
    do {
      stage = open.back();
      open.pop_back();
      component[stage] = components;
    } while (stage != root);
    ++components;
  }

  const FlowEdges& edges;
  std::vector<std::size_t> number, low, component, open;
  std::size_t visited = 0, components = 0;
};

}  // namespace

FlowShape shape_of(const FlowEdges& edges) {
  Search search(edges);
  FlowShape shape;
  shape.component.resize(edges.size());
  shape.cyclic.assign(search.components, false);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    shape.component[i] = search.components - 1 - search.component[i];
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (const std::size_t next : edges[i]) {
      if (shape.component[next] == shape.component[i]) shape.cyclic[shape.component[i]] = true;
    }
  }
  shape.downstream_first.resize(edges.size());
  std::iota(shape.downstream_first.rbegin(), shape.downstream_first.rend(), 0);
  std::stable_sort(
      shape.downstream_first.begin(), shape.downstream_first.end(),
      [&](std::size_t a, std::size_t b) { return shape.component[a] > shape.component[b]; });
  return shape;
}

// ---- Building ----------------------------------------------------------------------------------

Tunnel::Tunnel(Feeds& own, std::size_t number, const weir_tunnel_options& options)
    : feeds(own),
      index(number),
      item_bytes(options.item_bytes),
      overflow(options.overflow),
      ring(capacity_of(options), options.item_bytes),
      queued(options.overflow != WEIR_OVERFLOW_BLOCK),
      sized(options.capacity > 0 || options.overflow == WEIR_OVERFLOW_KEEP_LATEST),
      name_(name_or(options.name, "tunnel", number)) {}

Stage::~Stage() {
  if (release != nullptr) release(payload);
}

void FlowGraph::refuse_when_sealed(const char* what) const {
  if (flow_.groups.sealed()) {
    fail(WEIR_STATUS_BUSY, "pipeline '{}' has started: it gets no more {}", flow_.name, what);
  }
}

weir_tunnel* FlowGraph::add_tunnel(const weir_tunnel_options& options) {
  refuse_when_sealed("tunnels");
  const std::string called = name_or(options.name, "tunnel", tunnels_.size());
  if (options.item_bytes == 0 || options.item_bytes > kMostItemBytes) {
    fail_argument("items of {} bytes do not fit tunnel '{}': 1 to {}", options.item_bytes, called,
                  kMostItemBytes);
  }
  if (options.capacity > kMostCapacity) {
    fail_argument("capacity {} of tunnel '{}' is too large: at most {}", options.capacity, called,
                  kMostCapacity);
  }
  if (options.overflow < WEIR_OVERFLOW_BLOCK || options.overflow > WEIR_OVERFLOW_KEEP_LATEST) {
    fail_argument("overflow {} of tunnel '{}' is none", static_cast<int>(options.overflow), called);
  }
  tunnels_.reserve(tunnels_.size() + 1);
  Owned<weir_tunnel> made(new weir_tunnel(feeds_, tunnels_.size(), options));
  flow_.groups.add(*made);
  return tunnels_.emplace_back(std::move(made)).get();
}

Tunnel& FlowGraph::own(weir_tunnel* tunnel, const Stage& stage) const {
  weir_tunnel& checked = weir_tunnel::check(tunnel);
  if (&checked.feeds != &feeds_) {
    fail_argument("tunnel '{}' of stage '{}' belongs to another pipeline than '{}'", checked.name(),
                  stage.name, flow_.name);
  }
  return checked;
}

void FlowGraph::add_stage(const weir_stage_options& options, std::size_t group,
                          OffloadExecutor* executor, std::size_t cores) {
  refuse_when_sealed("stages");
  auto made = std::make_unique<Stage>();
  Stage& stage = *made;
  stage.name = name_or(options.name, "stage", stages_.size());
  if (options.function == nullptr && executor == nullptr)
    fail_argument("stage '{}' has no function", stage.name);
  if (options.outputs == nullptr && options.output_count > 0) {
    fail_argument("{} of stage '{}' {} given as NULL", counted(options.output_count, "output"),
                  stage.name, is_or_are(options.output_count));
  }
  for (std::size_t i = 0; i < options.output_count; ++i) {
    stage.outputs.push_back(&own(options.outputs[i], stage));
    stage.output_numbers.push_back(stage.outputs.back()->index);
  }
  if (options.input != nullptr) {
    stage.input = &own(options.input, stage);
    if (stage.input->stage != nullptr) {
      fail(WEIR_STATUS_BUSY, "tunnel '{}' leads to stage '{}' already, and cannot lead to '{}'",
           stage.input->name(), stage.input->stage->name, stage.name);
    }
  } else if (options.workers > 1 && flow_.epochs.enabled()) {
    fail_argument("source '{}' has {} workers, but in a pipeline with epochs a source has one",
                  stage.name, options.workers);
  }
  stage.index = stages_.size();
  stage.function = options.function;
  stage.at_end = options.at_end;
  stage.payload = options.payload;
  stage.group = group;
  stage.ordered = options.ordered;
  stage.item_ns = options.item_ns;
  stage.cores = cores;
  if (options.ordered) {
    if (stage.input == nullptr) {
      fail_argument("source '{}' cannot be ordered: it has no input", stage.name);
    }
    stage.reorder = std::make_unique<Reorder>(kOrderedWindow);
  }
  if (executor != nullptr)
    stage.offload = std::make_unique<OffloadBatches>(flow_, stage, *executor);
  const std::size_t usual = stage.input == nullptr ? 1 : Permit::kMost;
  stage.permit.limit(options.workers == 0 ? usual : std::min(options.workers, Permit::kMost));
  stages_.push_back(std::move(made));
  stage.release = options.release;
  if (stage.input != nullptr) stage.input->stage = &stage;
  for (Tunnel* tunnel : stage.outputs) tunnel->written = true;
  if (stage.ordered) {
    queue_up(stage);
    stage.input->in_order = true;
    for (Tunnel* tunnel : stage.outputs) tunnel->in_order = true;
  }
  reports_ends_ = reports_ends_ || stage.at_end != nullptr || flow_.epochs.enabled();
}

// ---- Checking ----------------------------------------------------------------------------------

/// Refuses tunnels without a stage or a producer.
FlowEdges FlowGraph::checked_edges() const {
  if (stages_.empty()) fail_argument("pipeline '{}' has no stages", flow_.name);
  for (const auto& tunnel : tunnels_) {
    if (tunnel->stage == nullptr) {
      fail_argument("no stage of pipeline '{}' takes items from tunnel '{}'", flow_.name,
                    tunnel->name());
    }
    if (!tunnel->written && tunnel->open_feeds.load(std::memory_order_acquire) == 0) {
      fail_argument(
          "nothing puts items into tunnel '{}' of pipeline '{}': make it an output of a stage, or "
          "open a feed before the start",
          tunnel->name(), flow_.name);
    }
  }
  FlowEdges edges(stages_.size());
  for (const auto& stage : stages_) {
    for (const Tunnel* tunnel : stage->outputs) {
      edges[stage->index].push_back(tunnel->stage->index);
    }
  }
  return edges;
}

/// Refuses loops that no source or feed can put a first item into.
void FlowGraph::check_fed(const FlowEdges& edges, const FlowShape& shape) const {
  std::vector<bool> fed(shape.cyclic.size(), false);
  for (const auto& stage : stages_) {
    const Tunnel* const input = stage->input;
    if (input == nullptr || input->open_feeds.load(std::memory_order_acquire) > 0) {
      fed[shape.component[stage->index]] = true;
    }
  }
  for (auto at = shape.downstream_first.rbegin(); at != shape.downstream_first.rend(); ++at) {
    for (const std::size_t next : edges[*at]) {
      if (fed[shape.component[*at]]) fed[shape.component[next]] = true;
    }
  }
  const auto found = std::find(fed.begin(), fed.end(), false);
  if (found == fed.end()) return;
  std::vector<std::string> loop;
  for (const auto& stage : stages_) {
    if (fed.begin() + static_cast<std::ptrdiff_t>(shape.component[stage->index]) != found) continue;
    loop.push_back(fmt::format("stage '{}' with tunnel '{}'", stage->name, stage->input->name()));
  }
  fail_argument(
      "nothing puts a first item into a loop of pipeline '{}': {}; make one of these tunnels an "
      "output of a stage outside, or open a feed before the start",
      flow_.name, fmt::join(loop, ", "));
}

/// Refuses batches larger than the ring, in which they are gathered outside of loops: they would
/// never be full; and ordered stages in loops.
void FlowGraph::check_stages(const FlowShape& shape) const {
  for (const auto& stage : stages_) {
    if (shape.cyclic[shape.component[stage->index]]) continue;
    if (!stage->offload || !stage->offload->executor().room_is_given()) continue;
    const std::size_t batch = stage->offload->executor().room();
    const std::size_t capacity = stage->input->ring.capacity();
    if (batch <= capacity) continue;
    fail_argument(
        "batches of {} items of stage '{}' are never full: tunnel '{}' has room for {}; {}", batch,
        stage->name, stage->input->name(), capacity,
        stage->input->sized
            ? "make its capacity as large, or leave it out"
            : "add the stage before a feed is opened, or give the tunnel a capacity");
  }
  for (const std::size_t index : shape.downstream_first) {
    if (!stages_[index]->ordered || !shape.cyclic[shape.component[index]]) continue;
    fail_argument("stage '{}' is in a loop, where there is no order to keep", stages_[index]->name);
  }
}

// ---- Arranging ---------------------------------------------------------------------------------

std::vector<Component> FlowGraph::arrange(const std::vector<std::size_t>& workers) {
  refuse_when_sealed("workers");
  const FlowEdges edges = checked_edges();
  const FlowShape shape = shape_of(edges);
  check_fed(edges, shape);
  check_stages(shape);
  flow_.groups.create(workers);
  std::vector<Component> components(shape.cyclic.size());
  for (const auto& stage : stages_) {
    stage->component = shape.component[stage->index];
    stage->newest_first = shape.cyclic[stage->component];
    components[stage->component].stages.push_back(stage.get());
    for (const std::size_t next : edges[stage->index]) {
      if (next == stage->index) stage->feeds_itself = true;
      const std::size_t there = shape.component[next];
      if (there != stage->component) components[there].producers.push_back(stage->component);
    }
  }
  for (const std::size_t index : shape.downstream_first) {
    Stage& stage = *stages_[index];
    WorkerGroup& group = flow_.groups[stage.group];
    (stage.input != nullptr ? group.stages : group.sources).push_back(&stage);
    if (stage.permit.serial() && !stage.reorder) {  // loops have no order
      for (Tunnel* tunnel : stage.outputs) {
        if (!tunnel->in_order || tunnel->stage->component == stage.component) continue;
        stage.order_preserving.push_back(tunnel);
      }
    }
    stage.limited = stage.input == nullptr || stage.permit.below(group.workers) ||
                    !stage.order_preserving.empty();
    // All items go through the device, which keeps results until there is room.
    if (stage.offload && !stage.newest_first) queue_up(stage);
    if (!stage.reorder) continue;
    for (Reorder::Block& block : stage.reorder->blocks()) {
      for (const Tunnel* tunnel : stage.outputs) {
        block.memory.push_back(make_worker_buffer(*tunnel));
        block.outputs.add(*block.memory.back());
      }
    }
  }
  return components;
}

std::unique_ptr<WorkerBuffer> FlowGraph::make_worker_buffer(const Tunnel& tunnel) const {
  return std::make_unique<WorkerBuffer>(tunnel.item_bytes, 2 * most_at_once(tunnel),
                                        flow_.options.keep_bytes, tunnel.stage->name);
}

std::size_t FlowGraph::most_at_once(const Tunnel& tunnel) const noexcept {
  return std::clamp<std::size_t>(kMostBatchBytes / tunnel.item_bytes, 1, flow_.options.batch);
}

}  // namespace weir::rt
