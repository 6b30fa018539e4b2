#include "runtime/work_registry.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "graph/graph.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/fabric.hpp"
#include "share/share.hpp"
#include "tasks/queue.hpp"

namespace weir::rt {

WorkRegistry::WorkRegistry() {
  before_destruction_ = [this](weir_buffer& buffer) { release_from_queues(buffer); };
}

WorkRegistry::~WorkRegistry() = default;

// ---- Task queues -------------------------------------------------------------------------------

weir_queue* WorkRegistry::create_queue(const weir_queue_options& options) {
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

void WorkRegistry::destroy_queue(weir_queue* queue) noexcept {
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

void WorkRegistry::add_policy(const weir_policy_options& options) {
  sys::Lock lock(mutex_);
  policies_.add(options);
}

std::unique_ptr<Policy> WorkRegistry::make_policy(const std::string& name) {
  sys::Lock lock(mutex_);
  return policies_.make(name);
}

/// All queues.
Pinned<weir_queue> WorkRegistry::pin_queues() {
  std::vector<weir_queue*> all;
  const sys::Lock lock(mutex_);
  all.reserve(queues_.size());
  for (const auto& queue : queues_) all.push_back(queue.get());
  return {mutex_, queue_unpinned_, std::move(all)};
}

void WorkRegistry::with_queues(const std::function<void(const std::vector<weir_queue*>&)>& use) {
  const Pinned<weir_queue> all = pin_queues();
  use(all.list());
}

void WorkRegistry::release_from_queues(weir_buffer& buffer) {
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

weir_graph* WorkRegistry::create_graph(const weir_graph_options& options) {
  std::list<Owned<weir_graph>> made(1);
  std::string name;
  const weir_kernel* kernel = nullptr;
  {
    const sys::Lock lock(mutex_);
    ++graphs_made_;
    name = options.name != nullptr ? options.name : fmt::format("graph {}", graphs_made_);
    if (graph_kernel_ == nullptr) graph_kernel_ = &Graph::add_kernel(*this);
    kernel = graph_kernel_;
  }
  Graph::Target target =
      options.queue != nullptr ? target_of(options.queue) : target_of(options.stream);
  made.front().reset(
      new weir_graph(std::move(name), std::move(target), *kernel, options.record_only));
  return graphs_.add(std::move(made));
}

void WorkRegistry::destroy_graph(weir_graph* graph) noexcept {
  if (destroyed_elsewhere(graph, [this](weir_graph* dead) { destroy_graph(dead); })) return;
  graphs_.destroy(graph);
}

// ---- Shares -------------------------------------------------------------------------------------

weir_share* WorkRegistry::create_share(const weir_share_options& options, Share::Enqueue enqueue) {
  std::list<Owned<weir_share>> made(1);
  std::string name;
  {
    const sys::Lock lock(mutex_);
    ++shares_made_;
    name = options.name != nullptr ? options.name : fmt::format("share {}", shares_made_);
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
  made.front() = std::move(share);
  return shares_.add(std::move(made));
}

void WorkRegistry::destroy_share(weir_share* share) noexcept {
  if (destroyed_elsewhere(share, [this](weir_share* dead) { destroy_share(dead); })) return;
  shares_.destroy(share);
}

// ---- Pipelines ---------------------------------------------------------------------------------

weir_pipeline* WorkRegistry::create_pipeline(const weir_pipeline_options& options) {
  std::list<Owned<weir_pipeline>> made(1);
  sys::Lock lock(mutex_);
  const std::uint64_t number = pipelines_made_++;
  lock.unlock();
  const std::string name =
      options.name != nullptr ? options.name : fmt::format("pipeline {}", number);
  made.front().reset(new weir_pipeline(*this, batches_, name, options));
  return pipelines_.add(std::move(made));
}

void WorkRegistry::destroy_pipeline(weir_pipeline* pipeline) noexcept {
  if (destroyed_elsewhere(pipeline, [this](weir_pipeline* dead) { destroy_pipeline(dead); }))
    return;
  pipelines_.destroy(pipeline);
}

// ---- All ---------------------------------------------------------------------------------------

void WorkRegistry::end_work(std::int64_t deadline_ns) noexcept {
  while (weir_pipeline* const last = pipelines_.last()) destroy_pipeline(last);
  while (!queues_.empty()) {
    queues_.back()->finish_or_cancel(time_until(deadline_ns));
    destroy_queue(queues_.back().get());
  }
  while (weir_share* const last = shares_.last()) {
    last->finish_or_cancel(time_until(deadline_ns));
    destroy_share(last);
  }
}

void WorkRegistry::destroy_graphs() noexcept {
  while (weir_graph* const last = graphs_.last()) destroy_graph(last);
}

WaitResult WorkRegistry::synchronize_all(std::int64_t timeout_ns) {
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

void WorkRegistry::report_unreported() noexcept {
  pipelines_.each([](weir_pipeline& pipeline) { pipeline.report_unreported(); });
  each_queue([](weir_queue& queue) { queue.report_unreported(); });
  shares_.each([](weir_share& share) { share.report_unreported(); });
  report_unreported_streams();
}

}  // namespace weir::rt
