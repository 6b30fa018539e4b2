// The shape of a pipeline.
#pragma once

#include <cstddef>
#include <vector>

namespace weir::rt {

/// Stages that can reach each other are one component: they end together.
struct FlowShape {
  std::vector<std::size_t>
      component;             ///< of each stage; edges lead to the same or a larger component
  std::vector<bool> cyclic;  ///< of each component
  std::vector<std::size_t> downstream_first;  ///< all stages; in a component the last added first
};

/// Finds the components (Tarjan). edges[i]: the stages that stage i puts items for.
FlowShape shape_of(const std::vector<std::vector<std::size_t>>& edges);

}  // namespace weir::rt
