// The interface through which an observer reads the pipeline of a problem.
#pragma once

#include <functional>

#include <weir/pipeline.hpp>

namespace weir::apps {

/// Called with a pipeline, whose names are valid during the call.
using UsePipeline = std::function<void(const weir::PipelineState&)>;

/// A workload may be one, too.
class WatchedPipeline {
 public:
  virtual ~WatchedPipeline() = default;
  /// Makes pipelines that start from now on measure latencies. Returns whether there will be any.
  virtual bool watch() = 0;
  /// Calls use() unless there is no pipeline now; it must not call this object. On any thread.
  virtual void observe(const UsePipeline& use) const = 0;
};

}  // namespace weir::apps
