// A runtime: one instance of weir.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/graph.h>
#include <weir/pipeline.h>
#include <weir/queue.h>
#include <weir/runtime.h>
#include <weir/share.h>

#include "backend/backend.hpp"
#include "base/handle.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"
#include "pipeline/batch_store.hpp"
#include "runtime/fabric.hpp"
#include "runtime/live_runtime.hpp"
#include "runtime/staging_pool.hpp"
#include "runtime/watchdog.hpp"
#include "stream/registry.hpp"
#include "tasks/policy.hpp"
#include "tasks/wisdom.hpp"

namespace weir::rt {

/// Owns what a program has created with one weir_runtime: domains, task queues, shares, pipelines,
/// and in the Registry places, streams and buffers. Any thread.
class Runtime : public Registry {
 public:
  using EnqueueChunk = std::function<weir_event(const weir_chunk&)>;

  /// Returns the runtime of a registry; each registry is the base of one.
  static Runtime& of(Registry& registry) noexcept { return static_cast<Runtime&>(registry); }

  explicit Runtime(const weir_runtime_options& options);
  ~Runtime();

  const std::string& name() const noexcept { return name_; }

  // Task queues.
  weir_queue* create_queue(const weir_queue_options& options);
  void destroy_queue(weir_queue* queue) noexcept;
  void add_policy(const weir_policy_options& options);
  /// Makes a policy for a queue. Throws Error{not_found} with the nearest name.
  std::unique_ptr<Policy> make_policy(const std::string& name);
  /// Returns the stored division for a problem on this machine and these domains.
  Wisdom wisdom(std::string_view problem, std::uint64_t size) const {
    return {machine_name(), domain_list_, problem, size};
  }

  // Graphs.
  weir_graph* create_graph(const weir_graph_options& options);
  void destroy_graph(weir_graph* graph) noexcept;

  // Shares.
  weir_share* create_share(const weir_share_options& options, EnqueueChunk enqueue);
  void destroy_share(weir_share* share) noexcept;

  // Pipelines.
  weir_pipeline* create_pipeline(const weir_pipeline_options& options);
  void destroy_pipeline(weir_pipeline* pipeline) noexcept;

  /// Synchronises all queues and streams.
  WaitResult synchronize_all(std::int64_t timeout_ns);
  /// Logs all unreported failures.
  void report_unreported() noexcept;
  std::string describe() const;
  /// Returns the port to other ranks, nullptr without a fabric.
  Port* port() const noexcept { return fabric_.port(); }
  StagingPool& staging() noexcept { return staging_; }

  // For the watchdog.
  /// Calls use(queues). The queues are not destroyed meanwhile.
  void with_queues(const std::function<void(const std::vector<weir_queue*>&)>& use);
  /// Calls visit(queue) for all queues, without allocating. It must not create or destroy queues.
  template <class Visit>
  void each_queue(const Visit& visit) const {
    sys::Lock lock(mutex_);
    for (const auto& queue : queues_) visit(*queue);
  }
  /// The same for pipelines.
  template <class Visit>
  void each_pipeline(const Visit& visit) const {
    sys::Lock lock(mutex_);
    for (const auto& pipeline : pipelines_) visit(*pipeline);
  }

 private:
  Pinned<weir_queue> pin_queues();
  void release_from_queues(weir_buffer& buffer);
  void write_requested_trace() noexcept;

  const std::string name_ = "weir";
  const std::string domain_list_;  ///< as requested by the program or WEIR_DOMAINS
  const std::int64_t shutdown_timeout_ns_;
  std::string trace_path_;
  const FabricUse fabric_;  // outlives the fields below
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Owned<weir_domain>> domains_;

  mutable sys::Mutex mutex_;  // guards the lists below
  sys::Condition queue_unpinned_;
  std::vector<Owned<weir_queue>> queues_ WEIR_GUARDED_BY(mutex_);
  /// A failure that a queue reported to a call that then timed out.
  WaitResult unreported_failure_ WEIR_GUARDED_BY(mutex_);
  std::vector<Owned<weir_graph>> graphs_ WEIR_GUARDED_BY(mutex_);
  const weir_kernel* graph_kernel_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< made with the first one
  std::uint64_t graphs_made_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<Owned<weir_share>> shares_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t shares_made_ WEIR_GUARDED_BY(mutex_) = 0;
  BatchStore batches_;
  std::vector<Owned<weir_pipeline>> pipelines_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t pipelines_made_ WEIR_GUARDED_BY(mutex_) = 0;
  PolicyTable policies_ WEIR_GUARDED_BY(mutex_);
  StagingPool staging_{*this};
  std::unique_ptr<Watchdog> watchdog_;
  LiveRuntime live_;  // the last member: it begins when all others exist
};

}  // namespace weir::rt

/// The public handle.
struct weir_runtime final : weir::rt::Handle<weir_runtime>, weir::rt::Runtime {
  static constexpr const char* kNoun = "runtime";
  using Runtime::Runtime;
};
