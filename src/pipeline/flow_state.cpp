// The reported state of a pipeline.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_templates.hpp"

namespace weir::rt {

std::uint64_t Flow::elapsed_ns() const noexcept {
  if (!sealed()) return 0;
  const std::int64_t until = std::min(now_ns(), ended_ns_.load(std::memory_order_relaxed));
  return static_cast<std::uint64_t>(std::max<std::int64_t>(until - started_ns_, 0));
}

void Flow::get_info(weir_pipeline_info& info, weir_stage_info* stages, std::size_t count) {
  info.name = name_.c_str();
  info.stages = static_cast<std::size_t>(std::count_if(
      stages_.begin(), stages_.end(), [](const auto& stage) { return stage->input != nullptr; }));
  info.workers = sealed() ? workers_.size() : 0;
  info.epochs = epochs_done_.load(std::memory_order_acquire);
  info.at_end = state_.load(std::memory_order_acquire) == kEnded;
  info.all_stages = stages_.size();
  info.tunnels = tunnels_.size();
  info.elapsed_ns = elapsed_ns();
  if (stages == nullptr) return;
  std::size_t found = 0;
  for (const auto& stage : stages_) {
    if (stage->input == nullptr) continue;
    if (found == count) return;
    stages[found++] = info_of(*stage);
  }
}

weir_stage_info Flow::info_of(const Stage& stage) {
  weir_stage_info info{};
  info.name = stage.name.c_str();
  info.at_end = stage.at_its_end.load(std::memory_order_acquire);
  if (!sealed()) return info;
  const std::size_t tunnel = stage.input->index;
  info.failed = stage.failed.load(std::memory_order_relaxed);
  const sys::Lock lock(feeds_mutex_);
  each_count(tunnel, [&](const Count& each) { info.complete += each.completed(); });
  each_count(tunnel, [&](const Count& each) { info.created += each.created(); });
  for (const auto& worker : workers_) {
    const TunnelCounters& counters = worker->tunnel_counters[tunnel];
    info.dropped += counters.dropped.load(std::memory_order_relaxed);
    info.failed += counters.failed.load(std::memory_order_relaxed);
    info.most_kept =
        std::max<std::uint64_t>(info.most_kept, counters.most_kept.load(std::memory_order_relaxed));
  }
  for (const auto& feed : feeds_) {
    if (feed->tunnel.index == tunnel) {
      info.dropped += feed->dropped.load(std::memory_order_relaxed);
    }
  }
  return info;
}

std::string Flow::holders() {
  std::string text;
  for (const auto& stage : stages_) {
    if (stage->input == nullptr) {
      if (!stage->permit.over())
        text += fmt::format(", source '{}' is not at its end", stage->name);
      continue;
    }
    const weir_stage_info info = info_of(*stage);
    if (info.created > info.complete) {
      text += fmt::format(", stage '{}' holds {}", stage->name,
                          counted(info.created - info.complete, "item"));
    }
    if (stage->executor != nullptr && stage->reorder->under_way() > 0) {
      text += fmt::format(", {} batches of stage '{}' are on its device",
                          stage->reorder->under_way(), stage->name);
    }
    if (const auto open = stage->input->open_feeds.load(std::memory_order_acquire); open > 0) {
      text += fmt::format(", tunnel '{}' has {}", stage->input->name(), counted(open, "open feed"));
    }
  }
  if (const std::string kept = retained_items_->names(); !kept.empty()) text += ", " + kept;
  return text.empty() ? "all stages are idle" : text.substr(2);
}

std::uint64_t Flow::movement() noexcept {
  if (!sealed()) return 0;
  std::uint64_t moved = 0;
  const sys::Lock lock(feeds_mutex_);
  for (const auto& tunnel : tunnels_) {
    each_count(tunnel->index,
               [&](const Count& each) { moved += each.completed() + each.created(); });
  }
  return moved;
}

/// Number of workers that can be in a stage at once.
std::size_t Flow::workers_of(const Stage& stage) const noexcept {
  if (!sealed()) return 0;
  if (stage.executor != nullptr) return 1;
  const std::size_t all = groups_[stage.group].workers;
  return stage.limited ? std::min(stage.permit.limit(), all) : all;
}

void Flow::get_stage(std::size_t number, weir_stage_state& state) {
  if (number >= stages_.size()) {
    fail_argument("pipeline '{}' has no stage {}: it has {}", name_, number, stages_.size());
  }
  sampling_.store(true, std::memory_order_relaxed);
  const Stage& stage = *stages_[number];
  state.name = stage.name.c_str();
  state.input = stage.input != nullptr ? stage.input->index : SIZE_MAX;
  state.outputs = stage.output_numbers.data();
  state.output_count = stage.output_numbers.size();
  state.workers = workers_of(stage);
  state.on_device = stage.executor != nullptr;
  state.at_end = stage.input != nullptr ? stage.at_its_end.load(std::memory_order_acquire)
                                        : stage.permit.over();
  if (stage.input != nullptr) {
    const weir_stage_info info = info_of(stage);
    state.complete = info.complete;
    state.failed = info.failed;
  }
  state.busy_ns = stage.busy_ns.load(std::memory_order_relaxed);
  if (sealed()) {
    state.kept = retained_items_->retained_by(stage);
    for (const auto& worker : workers_) {
      const StageCounters& effort = worker->stage_counters[number];
      state.put += effort.put.load(std::memory_order_relaxed);
      state.busy_ns += effort.busy_ns.load(std::memory_order_relaxed);
    }
  }
  stage.latencies.read(state.latency);
}

void Flow::get_tunnel(std::size_t number, weir_tunnel_state& state) {
  if (number >= tunnels_.size()) {
    fail_argument("pipeline '{}' has no tunnel {}: it has {}", name_, number, tunnels_.size());
  }
  const Tunnel& tunnel = *tunnels_[number];
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
