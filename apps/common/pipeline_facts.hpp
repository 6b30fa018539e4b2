// Figures of a completed pipeline: its graph, and its bottleneck.
#pragma once

#include <nlohmann/json.hpp>
#include <weir/pipeline.hpp>

namespace weir::apps {

/// An object with `seconds`, `workers`, `stages`, `tunnels`, the name of the `bottleneck`,
/// whether it is `saturated`, and `findings` in words. Of a stage `outputs` are positions in
/// `tunnels`, and of a tunnel `stage` is one in `stages`. The busy share of a stage is that of its
/// own workers.
nlohmann::ordered_json facts_of(const weir::PipelineState& state);

/// How much of the time the workers of a stage, or its device, were busy with it.
double busy_share(const weir_stage_state& stage, std::uint64_t elapsed_ns);

}  // namespace weir::apps
