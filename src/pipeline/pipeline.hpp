// Pipelines of the program: a flow, and the places whose cores run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/pipeline.h>
#include <weir/stream.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/offload_executor.hpp"
#include "pipeline/stencil_stage.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

class BatchStore;
class Place;
class Registry;

/// Runs a worker on each core of its places. A worker is an action that lasts as long as the
/// pipeline, in a stream of its own, so that no worker waits for another. In virtual time there is
/// one worker: the thread that waits.
class Pipeline {
 public:
  /// The store outlives the pipeline.
  Pipeline(Registry& registry, BatchStore& store, const std::string& name,
           const weir_pipeline_options& options);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  /// Cancels the pipeline if it runs, and waits.
  ~Pipeline();

  const std::string& name() const noexcept { return flow_.name; }
  Registry& registry() const noexcept { return registry_; }
  Flow& flow() noexcept { return flow_; }

  // Called by the program. They throw Error.
  void add_stage(const weir_stage_options& options);
  weir_stencil* add_stencil(const weir_stencil_options& options);
  void start() { start(0); }
  void run();
  void wait(std::int64_t timeout_ns);
  /// Logs, once, a failure that the program has not seen.
  void report_unreported() noexcept { flow_.completion.report_unreported(); }
  bool virtual_time() const noexcept;

 private:
  std::size_t group_of(weir_place* place);
  std::size_t usual_group();
  std::size_t virtual_cores(const weir_stage_options& options) const;
  void add_kernel(const weir_stage_options& options);
  weir_place& check_place(weir_place* place) const;
  template <class Executor, class... Store, class Options>
  Executor add_executor(weir_place* place, const std::string& stage, const Options& options,
                        const weir_stage_options& as, Store&... store);
  void check_places() const;
  bool work_until(std::int64_t deadline_ns);
  weir_place& usual_place();
  void start(std::size_t kept_back);
  void start_worker(weir_place& place, std::size_t worker);
  void end_workers() noexcept;

  Registry& registry_;
  BatchStore& store_;
  Flow flow_;
  weir_place* usual_place_;
  weir_place* own_place_ = nullptr;
  std::vector<weir_place*> places_;  ///< by group
  std::vector<weir_stream*> streams_;
  std::vector<std::unique_ptr<OffloadExecutor>> executors_;
  std::vector<Owned<weir_stencil>> stencils_;
  std::vector<const weir_place*> executor_places_;  ///< places of kernel and stencil stages
  sys::Atomic<bool> worked_{false};  ///< in virtual time: a waiting thread runs the worker
};

}  // namespace weir::rt

/// The public handle.
struct weir_pipeline final : weir::rt::Handle<weir_pipeline>, weir::rt::Pipeline {
  static constexpr const char* kNoun = "pipeline";
  using Pipeline::Pipeline;
};
