// What the parts of a pipeline share.
#pragma once

#include <string>

#include "pipeline/flow_completion.hpp"
#include "pipeline/tunnel_access.hpp"

namespace weir::rt {

/// A pipeline as its parts see it: its options, its time and epochs, its workers and its end.
struct FlowContext {
  FlowContext(const std::string& called, const weir_pipeline_options& given)
      : name(called),
        options(given),
        epochs(given.epochs),
        completion(name, options, clock, groups),
        access(given.relief, epochs, groups) {}

  const std::string name;
  const weir_pipeline_options options;  ///< checked and complete
  FlowClock clock;
  Epochs epochs;
  WorkerGroups groups;
  FlowCompletion completion;
  TunnelAccess access;
};

}  // namespace weir::rt
