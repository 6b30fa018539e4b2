// The task queues, graphs, shares and pipelines of a runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/graph.h>
#include <weir/pipeline.h>
#include <weir/queue.h>
#include <weir/share.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "pipeline/batch_store.hpp"
#include "runtime/owned_list.hpp"
#include "stream/registry.hpp"
#include "tasks/policy.hpp"

namespace weir::rt {

/// A Registry that owns the objects which enqueue actions for the program: task queues, graphs,
/// shares and pipelines. Any thread.
class WorkRegistry : public Registry {
 public:
  using EnqueueChunk = std::function<weir_event(const weir_chunk&)>;

  // Task queues.
  weir_queue* create_queue(const weir_queue_options& options);
  void destroy_queue(weir_queue* queue) noexcept;
  void add_policy(const weir_policy_options& options);
  /// Makes a policy for a queue. Throws Error{not_found} with the nearest name.
  std::unique_ptr<Policy> make_policy(const std::string& name);

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
    pipelines_.each(visit);
  }

 protected:
  WorkRegistry();
  ~WorkRegistry();

  /// Destroys pipelines, queues and shares. Cancels their work at the deadline.
  void end_work(std::int64_t deadline_ns) noexcept WEIR_NOT_ANALYSED;
  /// Destroys graphs, after the end of all streams.
  void destroy_graphs() noexcept;
  /// Calls use(policies).
  template <class Use>
  void with_policies(const Use& use) const {
    sys::Lock lock(mutex_);
    use(policies_);
  }

 private:
  Pinned<weir_queue> pin_queues();
  void release_from_queues(weir_buffer& buffer);

  mutable sys::Mutex mutex_;
  sys::Condition queue_unpinned_;
  std::vector<Owned<weir_queue>> queues_ WEIR_GUARDED_BY(mutex_);
  /// A failure that a queue reported to a call that then timed out.
  WaitResult unreported_failure_ WEIR_GUARDED_BY(mutex_);
  const weir_kernel* graph_kernel_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< made with the first one
  std::uint64_t graphs_made_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t shares_made_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t pipelines_made_ WEIR_GUARDED_BY(mutex_) = 0;
  PolicyTable policies_ WEIR_GUARDED_BY(mutex_);

  OwnedList<weir_graph> graphs_;
  OwnedList<weir_share> shares_;
  BatchStore batches_;
  OwnedList<weir_pipeline> pipelines_;
};

}  // namespace weir::rt
