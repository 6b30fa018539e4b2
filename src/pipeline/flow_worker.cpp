#include "pipeline/flow_worker.hpp"

#include <algorithm>
#include <cstring>

#include "base/thread_role.hpp"
#include "pipeline/offload_batches.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kBriefly = 64;         ///< checks before a worker counts as idle
constexpr std::int64_t kSpinNs = 20'000;  ///< how long it polls before it sleeps
constexpr unsigned kPassesPerCheck = 64;  ///< of sleepers and ends, by a busy worker

std::size_t largest_batch(const FlowGraph& graph) noexcept {
  std::size_t bytes = 1;
  for (const auto& tunnel : graph.tunnels()) {
    bytes = std::max(bytes, graph.most_at_once(*tunnel) * tunnel->item_bytes);
  }
  return bytes;
}

bool can_send(const Stage& stage) noexcept {
  return stage.newest_first ||
         std::all_of(stage.outputs.begin(), stage.outputs.end(),
                     [](const Tunnel* tunnel) { return tunnel->ring.has_room(); });
}

}  // namespace

FlowWorker::FlowWorker(FlowContext& flow, const FlowGraph& graph, RetainedItems& retained,
                       TerminationDetector& detector, WorkerGroup& group, WorkerCounts& counts,
                       std::size_t index)
    : flow_(flow),
      graph_(graph),
      detector_(detector),
      group_(group),
      items_(graph, flow.access, counts),
      runner_(flow, graph, retained, items_, counts, index),
      taken_(allocate_items(largest_batch(graph))),
      taken_tags_(flow.options.batch) {
  held_.reserve(graph.stages().size());
}

void FlowWorker::work(std::int64_t deadline_ns) noexcept {
  const NoWaitScope in_pipeline;
  flow_.completion.enter();
  for (bool late = false; !flow_.completion.ended() && !late;) {
    if (!step()) {
      spin_then_park();
    } else if (++passes_ % kPassesPerCheck == 0) {
      flow_.groups.wake_one_of(group_);
      if (graph_.reports_ends()) detector_.check(runner_);
    }
    late = deadline_ns != sys::kNever && sys::now_ns() >= deadline_ns;
  }
  flow_.completion.leave();
}

/// Does one unit of work. Returns whether it found any.
bool FlowWorker::step() noexcept {
  return run_kept() || send_ordered() || run_waiting() || run_source() || load_small_batch();
}

/// Works on items that the worker keeps, or moves those that it cannot work on to the rings.
bool FlowWorker::run_kept() noexcept {
  bool some = false;
  for (Stage* stage : group_.stages) {
    const std::size_t size = items_.of(*stage->input).size();
    if (size >= runner_.pace(*stage).items() && run_kept(*stage)) return true;
    some = some || size > 0;
  }
  if (some) {
    for (Stage* stage : group_.stages) {
      if (!items_.of(*stage->input).empty() && run_kept(*stage)) return true;
    }
  }
  const bool moved = items_.flush_all();
  std::erase_if(held_, [&](Stage* stage) {
    if (items_.keeps_in_order(*stage)) return false;
    stage->permit.leave();
    flow_.groups.wake_one_of(group_);
    return true;
  });
  return moved;
}

bool FlowWorker::run_kept(Stage& stage) noexcept {
  WorkerBuffer& kept = items_.of(*stage.input);
  if (stage.offload) return stage.offload->load_from(kept, OffloadBatches::Load::full);
  if (stage.input->queued || !enter(stage)) return false;
  const std::size_t most = runner_.pace(stage).items();
  WorkerBuffer::Batch batch = stage.newest_first ? kept.take_newest(most) : kept.take_oldest(most);
  if (stage.feeds_itself) {
    std::memcpy(taken_.get(), batch.items, batch.count * stage.input->item_bytes);
    batch.items = taken_.get();
  }
  runner_.run(stage, batch, items_.outputs(stage));
  leave(stage);
  share();
  return true;
}

bool FlowWorker::run_waiting() noexcept {
  for (Stage* stage : group_.stages) {
    if (stage->offload) {
      if (stage->offload->load_waiting(OffloadBatches::Load::full)) return true;
      continue;
    }
    if (!stage->input->ring.ready() || (stage->reorder && !stage->reorder->open())) continue;
    if (items_.keeps_for_others(*stage) || !enter(*stage)) continue;
    const bool found = run_waiting(*stage);
    leave(*stage);
    if (found) return true;
  }
  return false;
}

bool FlowWorker::run_waiting(Stage& stage) noexcept {
  std::size_t count = 0;
  if (!stage.reorder) {
    count = take(stage);
    if (count > 0) run_taken(stage, count, items_.outputs(stage));
  } else {
    Reorder::Block* const block =
        stage.reorder->take([&](Reorder::Block&) { return (count = take(stage)) > 0; });
    if (block != nullptr) {
      run_taken(stage, count, block->outputs);
      block->ready.store(true, std::memory_order_seq_cst);
      send_ordered(stage);
    }
  }
  return count > 0;
}

/// Takes a batch from a ring. Returns its size.
std::size_t FlowWorker::take(Stage& stage) noexcept {
  const std::size_t count = flow_.access.pop(*stage.input, {taken_.get(), taken_tags_.data()},
                                             runner_.pace(stage).items());
  if (count > 0) flow_.groups.on_taken(stage);
  return count;
}

/// Runs a stage on items taken from a ring, one call for each tag.
void FlowWorker::run_taken(Stage& stage, std::size_t count, Outputs& outputs) noexcept {
  const std::size_t bytes = stage.input->item_bytes;
  for (std::size_t first = 0; first < count;) {
    const ItemTag tag = taken_tags_[first];
    std::size_t next = first + 1;
    while (next < count && taken_tags_[next] == tag) ++next;
    runner_.run(stage, {taken_.get() + first * bytes, next - first, tag}, outputs);
    first = next;
  }
  share();
}

/// Gives a device what there is.
bool FlowWorker::load_small_batch() noexcept {
  constexpr auto any = OffloadBatches::Load::any;
  return std::any_of(group_.stages.begin(), group_.stages.end(), [&](Stage* stage) {
    return stage->offload && (stage->offload->load_from(items_.of(*stage->input), any) ||
                              stage->offload->load_waiting(any));
  });
}

bool FlowWorker::can_run(const Stage& source) const noexcept {
  return source.permit.free() &&
         flow_.epochs.admitted(source.epoch.load(std::memory_order_relaxed));
}

bool FlowWorker::run_source() noexcept {
  const std::vector<Stage*>& sources = group_.sources;
  if (sources.empty() || !items_.empty()) return false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Stage& source = *sources[(next_source_ + i) % sources.size()];
    if (!can_run(source) || !source.permit.try_enter()) continue;
    if (flow_.epochs.admitted(source.epoch.load(std::memory_order_relaxed))) {
      next_source_ += i + 1;
      const bool put = runner_.run_source(source);
      leave(source);
      if (!put) load_small_batch();
      // After a brief call no sleeping worker needs a wake-up.
      if (runner_.pace(source).slow()) flow_.groups.wake_one_of(group_);
      share();
      return true;
    }
    source.permit.leave();
  }
  return false;
}

void FlowWorker::leave(Stage& stage) noexcept {
  if (!stage.limited) return;
  if (items_.keeps_in_order(stage)) {
    held_.push_back(&stage);
    return;
  }
  stage.permit.leave();
  if (stage.input != nullptr && stage.input->ring.ready()) flow_.groups.wake_one_of(group_);
}

bool FlowWorker::send_ordered() noexcept {
  bool sent = false;
  for (Stage* stage : group_.stages) {
    if (stage->reorder && stage->reorder->ready()) sent = send_ordered(*stage) || sent;
  }
  return sent;
}

/// Sends the results of complete batches, as far as there is room. In a loop the worker keeps the
/// results of a device, which then never waits for room that only it can make. Returns whether
/// anything was sent.
bool FlowWorker::send_ordered(Stage& stage) noexcept {
  bool moved = false;
  stage.reorder->send([&](Reorder::Block& block) {
    Outputs& outputs = block.outputs;
    if (stage.offload && !block.collected) {
      Outputs& results = stage.newest_first ? items_.outputs(stage) : outputs;
      stage.offload->collect(block, results);
      runner_.settle(stage, {nullptr, block.count, block.tag}, results);
      block.collected = true;
      moved = true;
    }
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      moved = items_.flush(*stage.outputs[i], *outputs.buffers[i]) || moved;
    }
    if (!outputs.empty()) return false;
    moved = true;
    block.collected = false;
    if (stage.offload) stage.offload->release(block);
    return true;
  });
  if (moved) flow_.groups.wake_one_of(group_);
  return moved;
}

/// Moves the older half of the worker's items to the ring for idle workers, or only the oldest item
/// if items are claimed one by one.
void FlowWorker::share() noexcept {
  if (group_.idle_workers.load(std::memory_order_relaxed) == 0) return;
  for (auto each = group_.stages.rbegin(); each != group_.stages.rend(); ++each) {
    Tunnel& tunnel = *(*each)->input;
    WorkerBuffer& kept = items_.of(tunnel);
    if (kept.size() <= runner_.pace(**each).items()) continue;
    const WorkerBuffer::Batch batch = kept.oldest();
    const std::size_t count = flow_.access.at_once(std::min(batch.count, kept.size() / 2));
    kept.drop_oldest(tunnel.ring.push(ItemsToPut{batch.items, batch.tag}, count));
    flow_.groups.on_items(tunnel);
    return;
  }
}

// ---- Idling ------------------------------------------------------------------------------------

void FlowWorker::spin_then_park() noexcept {
  if (flow_.clock.is_virtual()) return advance_time();
  if (detector_.check(runner_)) return;
  for (unsigned i = 0; i < kBriefly; ++i) {
    sys::pause();
    if (flow_.completion.ended() || has_work()) return;
  }
  if (detector_.check(runner_)) return;
  group_.idle_workers.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t deadline = sys::now_ns() + kSpinNs;
  bool found = false;
  do {
    sys::yield();
    found = flow_.completion.ended() || has_work();
  } while (!found && sys::now_ns() < deadline);
  if (!found) park();
  group_.idle_workers.fetch_sub(1, std::memory_order_relaxed);
}

/// In virtual time: an idle worker advances time.
void FlowWorker::advance_time() noexcept {
  constexpr std::int64_t kParkNs = 1'000'000;
  const auto busy = [&] { return flow_.completion.ended() || has_work(); };
  if (detector_.check(runner_) || busy() || flow_.clock.advance()) return;
  flow_.groups.stuck().listen(sys::now_ns() + kParkNs, busy);
}

void FlowWorker::park() noexcept {
  const auto stirs = [&] {
    return flow_.completion.ended() || has_work() || detector_.check(runner_);
  };
  // Stuck: items wait for room that another worker makes.
  if (!items_.empty() ||
      std::any_of(group_.stages.begin(), group_.stages.end(),
                  [](const Stage* stage) { return stage->reorder && stage->reorder->ready(); })) {
    flow_.groups.stuck().listen(sys::kNever, stirs);
    return;
  }
  group_.parking.prepare();
  if (stirs()) {
    group_.parking.cancel();
  } else {
    group_.parking.park();
  }
}

/// Whether step() may find something to do.
bool FlowWorker::has_work() const noexcept {
  for (const Stage* stage : group_.stages) {
    const bool enters = !stage->limited || stage->permit.free();
    const bool takes = enters && !items_.keeps_for_others(*stage);
    const Tunnel& tunnel = *stage->input;
    if (stage->reorder && stage->reorder->ready() && can_send(*stage)) return true;
    if (stage->offload) {
      constexpr auto any = OffloadBatches::Load::any;
      const std::size_t kept = tunnel.queued ? 0 : items_.of(tunnel).size();
      if (stage->offload->can_load(kept, any) || stage->offload->can_load_waiting(any)) return true;
      continue;
    }
    if (takes && tunnel.ring.ready() && (!stage->reorder || stage->reorder->open())) return true;
    if (enters && !tunnel.queued && !items_.of(tunnel).empty()) return true;
  }
  if (items_.can_flush()) return true;
  return items_.empty() && std::any_of(group_.sources.begin(), group_.sources.end(),
                                       [&](const Stage* source) { return can_run(*source); });
}

}  // namespace weir::rt
