#include "pipeline/stage_runner.hpp"

#include <algorithm>

#include "pipeline/offload_batches.hpp"

namespace weir::rt {

void StageCall::begin(Stage& of, const WorkerBuffer::Batch& batch,
                      const Outputs& outputs) noexcept {
  items = batch.items;
  count = batch.count;
  index = 0;
  outlets = outputs.outlets.data();
  outlet_count = outputs.outlets.size();
  epoch = batch.tag.epoch;
  payload = of.payload;
  stage = &of;
  tag = batch.tag;
  retained.clear();
  busy_ns = -1;
  message[0] = '\0';
}

weir_item* StageCall::keep(std::size_t item) {
  if (items == nullptr) {
    fail_argument("stage '{}' has no items in this call that it could keep", stage->name);
  }
  const auto same = [&](const Retained& each) { return each.index == item; };
  if (item >= count || std::any_of(retained.begin(), retained.end(), same)) {
    fail_argument("stage '{}' cannot keep item {} of a batch of {}: {}", stage->name, item, count,
                  item >= count ? "there is none" : "it does already");
  }
  retained.reserve(retained.size() + 1);
  unsettled.reserve(unsettled.size() + retained.size() + 1);
  weir_item* const kept = all_retained.keep(*stage, tag);
  retained.push_back({item, kept->number});
  return kept;
}

void StageCall::note_retained(std::size_t done) noexcept {
  for (const Retained& each : retained) {
    if (each.index < done) {
      unsettled.push_back(each.number);
    } else {
      all_retained.forget(each.number);
    }
  }
}

StageRunner::StageRunner(FlowContext& flow, const FlowGraph& graph, RetainedItems& retained,
                         WorkerItems& items, WorkerCounts& counts, std::size_t worker)
    : flow_(flow), items_(items), counts_(counts), call_(retained, worker) {
  for (const auto& stage : graph.stages()) {
    pace_.emplace_back(stage->input != nullptr ? graph.most_at_once(*stage->input)
                                               : flow.options.batch);
  }
}

void StageRunner::run(Stage& stage, const WorkerBuffer::Batch& batch, Outputs& outputs) noexcept {
  WorkerBuffer::Batch rest = batch;
  while (rest.count > 0) {
    const weir_status status = call(stage, stage.function, rest, outputs);
    const bool all = status == WEIR_STATUS_OK;
    const std::size_t done = all ? rest.count : std::min(call_.index, rest.count - 1);
    call_.note_retained(done);
    if (all) break;
    const unsigned char* const item = rest.items + done * stage.input->item_bytes;
    WorkerCounts::add(counts_.tunnels[stage.input->index].failed, 1);
    fail_item(stage, item, status);
    if (flow_.completion.ended()) break;
    rest.items = item + stage.input->item_bytes;
    rest.count -= done + 1;
  }
  settle(stage, batch, outputs);
}

bool StageRunner::run_source(Stage& source) noexcept {
  const std::uint64_t epoch = source.epoch.load(std::memory_order_relaxed);
  call_.over = call_.epoch_over = false;
  Outputs& outputs = items_.outputs(source);
  const weir_status status =
      call(source, source.function, {nullptr, pace(source).items(), {epoch}}, outputs);
  if (status != WEIR_STATUS_OK) fail_item(source, nullptr, status);
  ItemTag tag{epoch};
  if (flow_.clock.sampling()) {
    tag.timestamp_ns = flow_.clock.is_virtual() ? flow_.clock.now_ns() : call_began_ns_;
  }
  const bool put = settle(source, {nullptr, 0, tag}, outputs);
  if (put || call_.epoch_over) source.epochs_used.store(epoch + 1, std::memory_order_release);
  if (call_.over || status != WEIR_STATUS_OK) {
    // Also ends its epoch, once the items that others put at their end are counted.
    source.permit.close();
  } else if (call_.epoch_over && flow_.epochs.enabled()) {
    source.epoch.store(epoch + 1, std::memory_order_release);
  }
  return put;
}

void StageRunner::run_end(Stage& stage, std::uint64_t epoch) noexcept {
  if (stage.at_end != nullptr) {
    const WorkerBuffer::Batch none{nullptr, 0, {epoch}};
    Outputs& outputs = items_.outputs(stage);
    const weir_status status = call(stage, stage.at_end, none, outputs);
    if (status != WEIR_STATUS_OK) fail_item(stage, nullptr, status);
    for (const Tunnel* tunnel : stage.outputs) {
      if (tunnel->stage->component != stage.component) continue;
      if (!items_.of(*tunnel).forget_uncounted()) continue;
      call_.fail("put items at its end for a stage that is at its end, too");
      fail_item(stage, nullptr, WEIR_STATUS_INVALID_ARGUMENT);
    }
    if (settle(stage, none, outputs)) {
      stage.epochs_used.store(epoch + 1, std::memory_order_release);
    }
  }
  if (!stage.offload) return;
  try {
    stage.offload->end();
  } catch (...) {
    const Outcome missing = current_exception_outcome(WEIR_STATUS_INTERNAL);
    call_.fail(missing.message.c_str());
    fail_item(stage, nullptr, missing.status);
  }
}

weir_status StageRunner::call(Stage& stage, weir_stage_function function,
                              const WorkerBuffer::Batch& batch, const Outputs& outputs) noexcept {
  call_.begin(stage, batch, outputs);
  BatchSize& pace = pace_[stage.index];
  const bool timed = pace.due();
  const std::int64_t begin = timed ? sys::now_ns() : 0;
  weir_status status = WEIR_STATUS_OK;
  try {
    status = function(&call_);
  } catch (...) {
    const Outcome thrown = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    status = thrown.status;
    call_.fail(thrown.message.c_str());
  }
  call_began_ns_ = timed ? begin : ItemTag::kNotSampled;
  if (timed) {
    const std::int64_t all = sys::now_ns() - begin;
    const std::int64_t busy =
        pace.note(batch.count, call_.busy_ns >= 0 ? std::min(call_.busy_ns, all) : all);
    if (!flow_.clock.is_virtual()) {
      WorkerCounts::add(counts_.stages[stage.index].busy_ns, static_cast<std::uint64_t>(busy));
    }
  }
  return status;
}

bool StageRunner::settle(Stage& stage, const WorkerBuffer::Batch& batch,
                         const Outputs& outputs) noexcept {
  std::size_t created = 0;
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
    created += count_created(stage, *stage.outputs[i], *outputs.buffers[i], batch.tag);
  }
  if (flow_.clock.is_virtual() && stage.item_ns > 0) {
    const std::size_t items = stage.input != nullptr ? batch.count : created;
    const double each = static_cast<double>(items) / static_cast<double>(stage.cores);
    const std::int64_t ns = flow_.clock.pass(stage.item_ns * each);
    WorkerCounts::add(counts_.stages[stage.index].busy_ns, static_cast<std::uint64_t>(ns));
  }
  Count* const epoch = flow_.epochs.count_in(counts_.epochs.get(), batch.tag.epoch);
  if (epoch != nullptr) epoch->create(created);
  WorkerCounts::add(counts_.stages[stage.index].put, created);
  std::size_t complete = batch.count;
  if (!call_.unsettled.empty()) {
    complete -= call_.all_retained.settle(call_.unsettled);
    call_.unsettled.clear();
  }
  if (complete > 0) {
    if (batch.tag.sampled()) {
      stage.latencies.note(flow_.clock.now_ns() - batch.tag.timestamp_ns, complete);
    }
    if (epoch != nullptr) epoch->complete(complete);  // epochs first: the pipeline ends last
    counts_.tunnels[stage.input->index].count.complete(complete);
  }
  for (Tunnel* tunnel : stage.outputs) {
    if (tunnel->queued || flow_.options.relief != WEIR_RELIEF_BOTH ||
        tunnel->stage->group != stage.group) {
      items_.flush(*tunnel, items_.of(*tunnel));
    }
  }
  return created > 0;
}

std::size_t StageRunner::count_created(const Stage& stage, const Tunnel& tunnel, WorkerBuffer& kept,
                                       const ItemTag& tag) noexcept {
  std::size_t put = 0;
  try {
    put = kept.count(tag);
  } catch (...) {  // no memory to note another epoch
    kept.forget_uncounted();
    call_.fail("no memory for items of another epoch");
    fail_item(stage, nullptr, WEIR_STATUS_OUT_OF_MEMORY);
  }
  if (put > 0) {
    TunnelCounters& counters = counts_.tunnels[tunnel.index];
    counters.count.create(put);
    if (kept.size() > counters.most_kept.load(std::memory_order_relaxed)) {
      counters.most_kept.store(kept.size(), std::memory_order_relaxed);
    }
  }
  return put;
}

void StageRunner::fail_item(const Stage& stage, const void* item, weir_status status) noexcept {
  const char* const why = call_.message[0] != '\0' ? call_.message : status_name(status);
  flow_.completion.report({stage.name.c_str(), item, status, why, 1});
}

}  // namespace weir::rt
