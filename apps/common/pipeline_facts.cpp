#include "common/pipeline_facts.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace weir::apps {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kBusy = 0.7;  ///< from here on something has no time left

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

Json latency_of(const weir_latency& latency) {
  Json json;
  for (const double percent : {50.0, 95.0, 99.0}) {
    const auto age = weir::percentile(latency, percent);
    if (age.count() < 0) return nullptr;
    json[fmt::format("p{:g}_s", percent)] = std::chrono::duration<double>(age).count();
  }
  return json;
}

Json as_json(const weir_stage_state& stage, std::uint64_t elapsed_ns) {
  Json json = {{"name", stage.name},
               {"source", stage.input == SIZE_MAX},
               {"device", stage.on_device},
               {"workers", stage.workers},
               {"items", stage.complete},
               {"put", stage.put},
               {"failed", stage.failed},
               {"busy_s", seconds(stage.busy_ns)},
               {"busy_share", busy_share(stage, elapsed_ns)},
               {"latency", latency_of(stage.latency)}};
  json["outputs"] = std::vector<std::size_t>(stage.outputs, stage.outputs + stage.output_count);
  return json;
}

Json as_json(const weir_tunnel_state& tunnel) {
  return {{"name", tunnel.name},
          {"stage", tunnel.stage},
          {"capacity", tunnel.capacity},
          {"items", tunnel.created},
          {"dropped", tunnel.dropped}};
}

/// The bottleneck of a pipeline.
struct Verdict {
  const weir_stage_state* stage = nullptr;
  const char* judgement = "fair";
  bool saturated = false;
  std::string words;
};

template <class Less>
const weir_stage_state* most(const weir::PipelineState& state, bool with_limits, Less less) {
  const weir_stage_state* found = nullptr;
  for (const weir_stage_state& stage : state.stages) {
    const bool limited = stage.on_device || stage.workers < state.info.workers;
    if (with_limits && !limited) continue;
    if (found == nullptr || less(*found, stage)) found = &stage;
  }
  return found;
}

/// "worker was busy", "2 workers were busy".
std::string busy_workers(std::size_t count) {
  return count == 1 ? "worker was busy" : fmt::format("{} workers were busy", count);
}

Verdict verdict_on(const weir::PipelineState& state) {
  const std::uint64_t elapsed = state.info.elapsed_ns;
  const auto share = [&](const weir_stage_state& stage) { return busy_share(stage, elapsed); };
  const auto by_share = [&](const auto& a, const auto& b) { return share(a) < share(b); };
  const weir_stage_state* const narrow = most(state, true, by_share);
  if (narrow != nullptr && share(*narrow) >= kBusy) {
    return {narrow, "fair", true,
            fmt::format(
                "Stage '{}' is the bottleneck: {} {:.0f} % of the time.", narrow->name,
                narrow->on_device ? "its device was busy" : "its " + busy_workers(narrow->workers),
                100 * share(*narrow))};
  }
  double work_ns = 0;
  for (const weir_stage_state& stage : state.stages) {
    if (!stage.on_device) work_ns += static_cast<double>(stage.busy_ns);
  }
  const double all_ns = static_cast<double>(elapsed) * static_cast<double>(state.info.workers);
  const weir_stage_state* const largest =
      most(state, false, [](const auto& a, const auto& b) { return a.busy_ns < b.busy_ns; });
  if (largest == nullptr || largest->busy_ns == 0 || all_ns <= 0) return {};
  if (work_ns >= kBusy * all_ns && !largest->on_device) {
    return {largest, "good", true,
            fmt::format(
                "The {} {:.0f} % of the time; stage '{}', the largest part, took {:.0f} % of that "
                "work.",
                busy_workers(state.info.workers), 100 * std::min(1.0, work_ns / all_ns),
                largest->name, 100 * static_cast<double>(largest->busy_ns) / work_ns)};
  }
  return {largest, "fair", false,
          fmt::format("No stage was busy all the time: the workers {:.0f} % of it, '{}' the most. "
                      "The pipeline waited for its sources, a device or its own end.",
                      100 * std::min(1.0, work_ns / all_ns), largest->name)};
}

}  // namespace

double busy_share(const weir_stage_state& stage, std::uint64_t elapsed_ns) {
  const double time = static_cast<double>(elapsed_ns) * static_cast<double>(stage.workers);
  return time > 0 ? std::min(1.0, static_cast<double>(stage.busy_ns) / time) : 0;
}

Json facts_of(const weir::PipelineState& state) {
  Json json = {{"seconds", seconds(state.info.elapsed_ns)}, {"workers", state.info.workers}};
  json["stages"] = json["tunnels"] = json["findings"] = Json::array();
  for (const weir_stage_state& stage : state.stages) {
    json["stages"].push_back(as_json(stage, state.info.elapsed_ns));
  }
  for (const weir_tunnel_state& tunnel : state.tunnels) json["tunnels"].push_back(as_json(tunnel));
  const Verdict verdict = verdict_on(state);
  json["bottleneck"] = verdict.stage != nullptr ? Json(verdict.stage->name) : Json(nullptr);
  json["saturated"] = verdict.saturated;
  if (!verdict.words.empty()) {
    json["findings"].push_back({{"judgement", verdict.judgement}, {"words", verdict.words}});
  }
  return json;
}

}  // namespace weir::apps
