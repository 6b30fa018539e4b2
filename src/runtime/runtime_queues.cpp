// Task queues, graphs, shares and pipelines of a runtime.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "graph/graph.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/runtime.hpp"
#include "share/share.hpp"
#include "tasks/queue.hpp"

namespace weir::rt {

// ---- Task queues -------------------------------------------------------------------------------

weir_queue* Runtime::create_queue(const weir_queue_options& options) {
  const std::uint64_t serial = next_serial();  // of no stream: its events are those of the tasks
  {
    sys::Lock lock(mutex_);
    queues_.reserve(queues_.size() + 1);
  }
  Owned<weir_queue> queue(
      new weir_queue(*this, serial, options, make_policy(Queue::policy_of(options))));
  weir_queue* const handle = queue.get();
  sys::Lock lock(mutex_);
  queues_.push_back(std::move(queue));
  return handle;
}

void Runtime::destroy_queue(weir_queue* queue) noexcept {
  if (destroyed_elsewhere(queue, [this](weir_queue* dead) { destroy_queue(dead); })) return;
  Owned<weir_queue> dead;
  {
    sys::Lock lock(mutex_);
    while (queue->pins > 0) queue_unpinned_.wait(lock);
    const auto found = std::find_if(queues_.begin(), queues_.end(),
                                    [queue](const auto& owned) { return owned.get() == queue; });
    if (found == queues_.end()) return;
    dead = std::move(*found);
    queues_.erase(found);
  }
  dead.reset();
}

void Runtime::add_policy(const weir_policy_options& options) {
  sys::Lock lock(mutex_);
  policies_.add(options);
}

std::unique_ptr<Policy> Runtime::make_policy(const std::string& name) {
  sys::Lock lock(mutex_);
  return policies_.make(name);
}

/// All queues.
Pinned<weir_queue> Runtime::pin_queues() {
  std::vector<weir_queue*> all;
  const sys::Lock lock(mutex_);
  all.reserve(queues_.size());
  for (const auto& queue : queues_) all.push_back(queue.get());
  return {mutex_, queue_unpinned_, std::move(all)};
}

void Runtime::with_queues(const std::function<void(const std::vector<weir_queue*>&)>& use) {
  const Pinned<weir_queue> all = pin_queues();
  use(all.list());
}

void Runtime::release_from_queues(weir_buffer& buffer) {
  const Pinned<weir_queue> all = pin_queues();
  for (weir_queue* queue : all.list()) queue->release(buffer);
}

// ---- Graphs -------------------------------------------------------------------------------------

namespace {

Graph::Target target_of(weir_queue* queue) {
  const auto launch = [queue](const weir_compute& compute) {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = compute.kernel;
    task.operands = compute.operands;
    task.operand_count = compute.operand_count;
    task.scalars = compute.scalars;
    task.scalar_count = compute.scalar_count;
    task.name = compute.name;
    return weir_queue::check(queue).submit(task, true);
  };
  return {[queue]() -> Stream& { return weir_queue::check(queue).stream_to_record(); }, launch};
}

Graph::Target target_of(weir_stream* stream) {
  const auto launch = [stream](const weir_compute& compute) {
    weir_stream& live = weir_stream::check(stream);
    live.await_room();
    return live.compute(compute, true);
  };
  return {[stream]() -> Stream& { return weir_stream::check(stream); }, launch};
}

}  // namespace

weir_graph* Runtime::create_graph(const weir_graph_options& options) {
  std::string name;
  const weir_kernel* kernel = nullptr;
  {
    sys::Lock lock(mutex_);
    ++graphs_made_;
    name = options.name != nullptr ? options.name : fmt::format("graph {}", graphs_made_);
    graphs_.reserve(graphs_.size() + 1);
    if (graph_kernel_ == nullptr) graph_kernel_ = &Graph::add_kernel(*this);
    kernel = graph_kernel_;
  }
  Graph::Target target =
      options.queue != nullptr ? target_of(options.queue) : target_of(options.stream);
  Owned<weir_graph> graph(
      new weir_graph(std::move(name), std::move(target), *kernel, options.record_only));
  weir_graph* const handle = graph.get();
  sys::Lock lock(mutex_);
  graphs_.push_back(std::move(graph));
  return handle;
}

void Runtime::destroy_graph(weir_graph* graph) noexcept {
  if (destroyed_elsewhere(graph, [this](weir_graph* dead) { destroy_graph(dead); })) return;
  Owned<weir_graph> dead;  // destroyed after the lock is released
  sys::Lock lock(mutex_);
  const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                  [graph](const auto& owned) { return owned.get() == graph; });
  if (found == graphs_.end()) return;
  dead = std::move(*found);
  graphs_.erase(found);
}

// ---- Shares -------------------------------------------------------------------------------------

weir_share* Runtime::create_share(const weir_share_options& options, Share::Enqueue enqueue) {
  std::string name;
  {
    sys::Lock lock(mutex_);
    ++shares_made_;
    name = options.name != nullptr ? options.name : fmt::format("share {}", shares_made_);
    shares_.reserve(shares_.size() + 1);
  }
  std::optional<ShareGroup::Services> services;
  if (options.fabric != nullptr) {
    weir_fabric& fabric = weir_fabric::check(options.fabric);
    services.emplace(ShareGroup::Services{fabric.port(), fabric.collectives(), fabric.share_hub()});
  }
  ShareGroup::CollectiveJoin join(services, Share::describe(options), options.timeout_ns);
  if (options.enqueue == nullptr) fail_argument("the function of a share is NULL");
  Owned<weir_share> share(
      new weir_share(*this, options, std::move(name), std::move(enqueue), join));
  share->start();
  weir_share* const handle = share.get();
  sys::Lock lock(mutex_);
  shares_.push_back(std::move(share));
  return handle;
}

void Runtime::destroy_share(weir_share* share) noexcept {
  if (destroyed_elsewhere(share, [this](weir_share* dead) { destroy_share(dead); })) return;
  Owned<weir_share> dead;  // destroyed after the lock is released
  sys::Lock lock(mutex_);
  const auto found = std::find_if(shares_.begin(), shares_.end(),
                                  [share](const auto& owned) { return owned.get() == share; });
  if (found == shares_.end()) return;
  dead = std::move(*found);
  shares_.erase(found);
}

// ---- Pipelines ---------------------------------------------------------------------------------

weir_pipeline* Runtime::create_pipeline(const weir_pipeline_options& options) {
  std::uint64_t number = 0;
  {
    sys::Lock lock(mutex_);
    number = pipelines_made_++;
    pipelines_.reserve(pipelines_.size() + 1);
  }
  const std::string name =
      options.name != nullptr ? options.name : fmt::format("pipeline {}", number);
  Owned<weir_pipeline> pipeline(new weir_pipeline(*this, batches_, name, options));
  weir_pipeline* const handle = pipeline.get();
  sys::Lock lock(mutex_);
  pipelines_.push_back(std::move(pipeline));
  return handle;
}

void Runtime::destroy_pipeline(weir_pipeline* pipeline) noexcept {
  if (destroyed_elsewhere(pipeline, [this](weir_pipeline* dead) { destroy_pipeline(dead); }))
    return;
  Owned<weir_pipeline> dead;
  {
    sys::Lock lock(mutex_);
    const auto found = std::find_if(pipelines_.begin(), pipelines_.end(),
                                    [&](const auto& owned) { return owned.get() == pipeline; });
    if (found == pipelines_.end()) return;
    dead = std::move(*found);
    pipelines_.erase(found);
  }
}

// ---- All ---------------------------------------------------------------------------------------

WaitResult Runtime::synchronize_all(std::int64_t timeout_ns) {
  if (NoWaitScope::active()) fail(WEIR_STATUS_BUSY, "a kernel or callback must not synchronise");
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  const auto remaining = [&] { return time_until(deadline); };
  const Pinned<weir_queue> queues = pin_queues();
  for (weir_queue* queue : queues.list()) {
    WaitResult result = queue->synchronize(remaining());
    if (result.timed_out()) return result;
    const sys::Lock lock(mutex_);
    if (unreported_failure_.status == WEIR_STATUS_OK) unreported_failure_ = std::move(result);
  }
  WaitResult result = drain_all(remaining());
  if (result.timed_out()) return result;
  const sys::Lock lock(mutex_);
  WaitResult first = std::exchange(unreported_failure_, {});
  return first.status == WEIR_STATUS_OK ? result : first;
}

void Runtime::report_unreported() noexcept {
  {
    sys::Lock lock(mutex_);
    for (const auto& pipeline : pipelines_) pipeline->report_unreported();
    for (const auto& queue : queues_) queue->report_unreported();
    for (const auto& share : shares_) share->report_unreported();
  }
  report_unreported_streams();
}

}  // namespace weir::rt
