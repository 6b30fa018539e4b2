#include "pipeline/flow.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/log.hpp"
#include "pipeline/offload_batches.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUsualBatch = 64, kMostBatch = 65'536;
constexpr std::size_t kMostEpochs = 65'536;
constexpr std::size_t kUsualKeepBytes = std::size_t{256} << 20;

weir_pipeline_options checked(weir_pipeline_options options, const std::string& name) {
  if (options.batch > kMostBatch) {
    fail_argument("a batch of {} items is too large for pipeline '{}': at most {}", options.batch,
                  name, kMostBatch);
  }
  if (options.epochs > kMostEpochs) {
    fail_argument("{} epochs at once are too many for pipeline '{}': at most {}", options.epochs,
                  name, kMostEpochs);
  }
  if (options.relief < WEIR_RELIEF_BOTH || options.relief > WEIR_RELIEF_OFF) {
    fail_argument("relief {} of pipeline '{}' is none", static_cast<int>(options.relief), name);
  }
  if (options.epochs == 0 && options.on_epoch != nullptr) {
    fail_argument("pipeline '{}' has on_epoch, but epochs is 0: say how many may be in flight",
                  name);
  }
  if (options.batch == 0) options.batch = kUsualBatch;
  if (options.keep_bytes == 0) options.keep_bytes = kUsualKeepBytes;
  return options;
}

}  // namespace

Flow::Flow(const std::string& called, const weir_pipeline_options& given)
    : FlowContext(called, checked(given, called)) {}

Flow::~Flow() {
  const std::string kept = retained.abandon();
  if (!kept.empty()) log::warning("pipeline '{}' is destroyed while {}", name, kept);
  completion.wait_for_calls();
}

void Flow::seal(const std::vector<std::size_t>& group_workers) {
  detector.set_components(graph.arrange(group_workers));
  workers_.clear();
  counts.workers.clear();
  const auto add_counts = [this]() -> WorkerCounts& {
    return *counts.workers.emplace_back(std::make_unique<WorkerCounts>(
        graph.tunnels().size(), graph.stages().size(), epochs.most()));
  };
  retained.count_in(add_counts());
  for (WorkerGroup& group : groups.all()) {
    for (std::size_t i = 0; i < group.workers; ++i) {
      workers_.push_back(std::make_unique<FlowWorker>(*this, graph, retained, detector, group,
                                                      add_counts(), workers_.size()));
    }
  }
  feeds.locked([this](const FeedList&) {
    clock.start();
    groups.seal();
  });
}

// ---- Reports -----------------------------------------------------------------------------------

void Flow::get_info(weir_pipeline_info& info, weir_stage_info* stages, std::size_t count) {
  info.name = name.c_str();
  info.stages = static_cast<std::size_t>(
      std::count_if(graph.stages().begin(), graph.stages().end(),
                    [](const auto& stage) { return stage->input != nullptr; }));
  info.workers = groups.sealed() ? workers_.size() : 0;
  info.epochs = epochs.done();
  info.at_end = completion.finished();
  info.all_stages = graph.stages().size();
  info.tunnels = graph.tunnels().size();
  info.elapsed_ns = groups.sealed() ? clock.elapsed_ns() : 0;
  if (stages == nullptr) return;
  std::size_t found = 0;
  for (const auto& stage : graph.stages()) {
    if (stage->input == nullptr) continue;
    if (found == count) return;
    stages[found++] = info_of(*stage);
  }
}

weir_stage_info Flow::info_of(const Stage& stage) {
  weir_stage_info info{};
  info.name = stage.name.c_str();
  info.at_end = stage.at_its_end.load(std::memory_order_acquire);
  if (!groups.sealed()) return info;
  if (stage.offload) info.failed = stage.offload->failed();
  feeds.locked([&](const FeedList& list) {
    counts.each(*stage.input, list, [&](const TunnelCounters& each) {
      info.complete += each.count.completed();
      info.dropped += each.dropped.load(std::memory_order_relaxed);
      info.failed += each.failed.load(std::memory_order_relaxed);
      info.most_kept =
          std::max<std::uint64_t>(info.most_kept, each.most_kept.load(std::memory_order_relaxed));
    });
    counts.each(*stage.input, list,
                [&](const TunnelCounters& each) { info.created += each.count.created(); });
  });
  return info;
}

std::string Flow::holders() {
  std::string text;
  for (const auto& stage : graph.stages()) {
    if (stage->input == nullptr) {
      if (!stage->permit.drained())
        text += fmt::format(", source '{}' is not at its end", stage->name);
      continue;
    }
    const weir_stage_info info = info_of(*stage);
    if (info.created > info.complete) {
      text += fmt::format(", stage '{}' holds {}", stage->name,
                          counted(info.created - info.complete, "item"));
    }
    if (stage->offload && stage->reorder->under_way() > 0) {
      text += fmt::format(", {} batches of stage '{}' are on its device",
                          stage->reorder->under_way(), stage->name);
    }
    if (const auto open = stage->input->open_feeds.load(std::memory_order_acquire); open > 0) {
      text += fmt::format(", tunnel '{}' has {}", stage->input->name(), counted(open, "open feed"));
    }
  }
  if (const std::string kept = retained.names(); !kept.empty()) text += ", " + kept;
  return text.empty() ? "all stages are idle" : text.substr(2);
}

std::uint64_t Flow::movement() noexcept {
  if (!groups.sealed()) return 0;
  std::uint64_t moved = 0;
  feeds.locked([&](const FeedList& list) {
    for (const auto& tunnel : graph.tunnels()) {
      counts.each(*tunnel, list, [&](const TunnelCounters& each) {
        moved += each.count.completed() + each.count.created();
      });
    }
  });
  return moved;
}

void Flow::get_stage(std::size_t number, weir_stage_state& state) {
  if (number >= graph.stages().size()) {
    fail_argument("pipeline '{}' has no stage {}: it has {}", name, number, graph.stages().size());
  }
  clock.start_sampling();
  const Stage& stage = *graph.stages()[number];
  state.name = stage.name.c_str();
  state.input = stage.input != nullptr ? stage.input->index : SIZE_MAX;
  state.outputs = stage.output_numbers.data();
  state.output_count = stage.output_numbers.size();
  state.on_device = stage.offload != nullptr;
  state.at_end = stage.input != nullptr ? stage.at_its_end.load(std::memory_order_acquire)
                                        : stage.permit.drained();
  if (stage.input != nullptr) {
    const weir_stage_info info = info_of(stage);
    state.complete = info.complete;
    state.failed = info.failed;
  }
  if (stage.offload) state.busy_ns = stage.offload->busy_ns();
  if (groups.sealed()) {
    const std::size_t all = groups[stage.group].workers;
    state.workers = stage.offload ? 1 : stage.limited ? std::min(stage.permit.limit(), all) : all;
    state.kept = retained.retained_by(stage);
    for (const auto& each : counts.workers) {
      const StageCounters& effort = each->stages[number];
      state.put += effort.put.load(std::memory_order_relaxed);
      state.busy_ns += effort.busy_ns.load(std::memory_order_relaxed);
    }
  }
  stage.latencies.read(state.latency);
}

void Flow::get_tunnel(std::size_t number, weir_tunnel_state& state) {
  if (number >= graph.tunnels().size()) {
    fail_argument("pipeline '{}' has no tunnel {}: it has {}", name, number,
                  graph.tunnels().size());
  }
  const Tunnel& tunnel = *graph.tunnels()[number];
  state.name = tunnel.name().c_str();
  state.stage = tunnel.stage != nullptr ? tunnel.stage->index : SIZE_MAX;
  state.capacity = tunnel.ring.capacity();
  state.overflow = tunnel.overflow;
  if (tunnel.stage == nullptr) return;
  const weir_stage_info info = info_of(*tunnel.stage);
  state.created = info.created;
  state.complete = info.complete;
  state.dropped = info.dropped;
  const std::uint64_t held = info.created - info.complete;
  state.waiting = std::min<std::uint64_t>(tunnel.ring.size(), held);
  state.under_way = held - state.waiting;
}

}  // namespace weir::rt
