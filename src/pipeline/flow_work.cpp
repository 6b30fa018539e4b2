// The loop of a worker: find items, run stages, move items, sleep.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/thread_role.hpp"
#include "pipeline/flow.hpp"
#include "pipeline/flow_templates.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kBriefly = 64;         ///< checks before a worker counts as idle
constexpr std::int64_t kSpinNs = 20'000;  ///< how long it polls before it sleeps
constexpr unsigned kPassesPerCheck = 64;  ///< of sleepers and ends, by a busy worker

}  // namespace

void Flow::work(std::size_t index, std::int64_t deadline_ns) noexcept {
  const NoWaitScope in_pipeline;
  FlowWorker& worker = *workers_[index];
  working_.fetch_add(1, std::memory_order_seq_cst);
  for (bool late = false; !ended() && !late;) {
    if (step(worker)) {
      if (++worker.passes % kPassesPerCheck == 0) check_others(worker);
    } else {
      spin_then_park(worker);
    }
    late = deadline_ns != sys::kNever && sys::now_ns() >= deadline_ns;
  }
  working_.fetch_sub(1, std::memory_order_seq_cst);
  done_.ring();
}

/// Does one unit of work. Returns whether it found any.
bool Flow::step(FlowWorker& worker) noexcept {
  return run_kept(worker) || send_ordered(worker) || run_waiting(worker) || run_source(worker);
}

bool Flow::run_kept(FlowWorker& worker) noexcept {
  bool some = false;
  for (Stage* stage : worker.group.stages) {
    const std::size_t size = worker.buffers[stage->input->index]->size();
    if (size >= worker.pace[stage->index].items() && run_kept(worker, *stage)) return true;
    some = some || size > 0;
  }
  if (some) {
    for (Stage* stage : worker.group.stages) {
      if (!worker.buffers[stage->input->index]->empty() && run_kept(worker, *stage)) return true;
    }
  }
  return flush_all(worker);
}

/// Works on items that the worker keeps for a stage of its group.
bool Flow::run_kept(FlowWorker& worker, Stage& stage) noexcept {
  if (stage.executor != nullptr) return load_kept(worker, stage);
  if (stage.input->queued || !enter(stage)) return false;
  WorkerBuffer& kept = *worker.buffers[stage.input->index];
  const std::size_t most = worker.pace[stage.index].items();
  WorkerBuffer::Batch batch = stage.newest_first ? kept.take_newest(most) : kept.take_oldest(most);
  if (stage.feeds_itself) {
    std::memcpy(worker.taken.data(), batch.items, batch.count * stage.input->item_bytes);
    batch.items = worker.taken.data();
  }
  run(worker, stage, batch, worker.outputs[stage.index]);
  leave(worker, stage);
  share(worker);
  return true;
}

bool Flow::run_waiting(FlowWorker& worker) noexcept {
  for (Stage* stage : worker.group.stages) {
    if (stage->executor != nullptr) {
      if (load_waiting(worker, *stage)) return true;
      continue;
    }
    if (!stage->input->ring.ready() || (stage->reorder && !stage->reorder->open())) continue;
    if (worker.keeps_for_others(*stage) || !enter(*stage)) continue;
    const bool found = run_waiting(worker, *stage);
    leave(worker, *stage);
    if (found) return true;
  }
  return false;
}

bool Flow::run_waiting(FlowWorker& worker, Stage& stage) noexcept {
  std::size_t count = 0;
  if (!stage.reorder) {
    count = take(worker, stage);
    if (count > 0) run_taken(worker, stage, count, worker.outputs[stage.index]);
  } else {
    Reorder::Block* const block =
        stage.reorder->take([&](Reorder::Block&) { return (count = take(worker, stage)) > 0; });
    if (block != nullptr) {
      run_taken(worker, stage, count, block->outputs);
      block->ready.store(true, std::memory_order_seq_cst);
      send_ordered(worker, stage);
    }
  }
  return count > 0;
}

/// Takes a batch from a ring. Returns its size.
std::size_t Flow::take(FlowWorker& worker, Stage& stage) noexcept {
  Tunnel& tunnel = *stage.input;
  const std::size_t count = pop(tunnel, {worker.taken.data(), worker.taken_tags.data()},
                                worker.pace[stage.index].items());
  if (count == 0) return 0;
  on_room(tunnel);
  if (tunnel.ring.ready()) wake_one_of(worker.group);
  return count;
}

/// Runs a stage on items taken from a ring, one call for each tag.
void Flow::run_taken(FlowWorker& worker, Stage& stage, std::size_t count,
                     Outputs& outputs) noexcept {
  const std::size_t bytes = stage.input->item_bytes;
  for (std::size_t first = 0; first < count;) {
    const ItemTag tag = worker.taken_tags[first];
    std::size_t next = first + 1;
    while (next < count && worker.taken_tags[next] == tag) ++next;
    run(worker, stage, {worker.taken.data() + first * bytes, next - first, tag}, outputs);
    first = next;
  }
  share(worker);
}

bool Flow::run_source(FlowWorker& worker) noexcept {
  const std::vector<Stage*>& sources = worker.group.sources;
  if (sources.empty() || worker.keeps_something()) return false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Stage& source = *sources[(worker.next_source + i) % sources.size()];
    if (!can_run(source) || !source.permit.try_enter()) continue;
    if (admitted(source.epoch.load(std::memory_order_relaxed))) {
      worker.next_source += i + 1;
      run_source(worker, source);
      leave(worker, source);
      // After a brief call no sleeping worker needs a wake-up.
      if (worker.pace[source.index].slow()) wake_one_of(worker.group);
      share(worker);
      return true;
    }
    source.permit.leave();
  }
  return false;
}

void Flow::run_source(FlowWorker& worker, Stage& source) noexcept {
  const std::uint64_t epoch = source.epoch.load(std::memory_order_relaxed);
  const WorkerBuffer::Batch batch{nullptr, worker.pace[source.index].items(), {epoch}};
  worker.call.over = worker.call.epoch_over = false;
  Outputs& outputs = worker.outputs[source.index];
  const weir_status status = call(worker, source, source.function, batch, outputs);
  if (status != WEIR_STATUS_OK) fail_item(worker, source, nullptr, status);
  ItemTag tag{epoch};
  if (sampling()) tag.timestamp_ns = pass_time_ ? now_ns() : worker.call_began_ns;
  const bool put = settle(worker, source, {nullptr, 0, tag}, outputs);
  if (put || worker.call.epoch_over) {
    source.epochs_used.store(epoch + 1, std::memory_order_release);
  }
  if (worker.call.over || status != WEIR_STATUS_OK) {
    source.permit
        .close();  // also ends its epoch, once the items that others put at their end are counted
  } else if (worker.call.epoch_over && options_.epochs > 0) {
    source.epoch.store(epoch + 1, std::memory_order_release);
  }
}

void Flow::leave(FlowWorker& worker, Stage& stage) noexcept {
  if (!stage.limited) return;
  if (worker.keeps_in_order(stage)) {
    worker.held.push_back(&stage);
    return;
  }
  stage.permit.leave();
  if (stage.input != nullptr && stage.input->ring.ready()) wake_one_of(worker.group);
}

/// Runs a stage on items of one tag; after an item that fails, on the rest.
void Flow::run(FlowWorker& worker, Stage& stage, const WorkerBuffer::Batch& batch,
               Outputs& outputs) noexcept {
  WorkerBuffer::Batch rest = batch;
  while (rest.count > 0) {
    const weir_status status = call(worker, stage, stage.function, rest, outputs);
    const bool all = status == WEIR_STATUS_OK;
    const std::size_t done = all ? rest.count : std::min(worker.call.index, rest.count - 1);
    note_retained(worker, done);
    if (all) break;
    const unsigned char* const item = rest.items + done * stage.input->item_bytes;
    TunnelCounters::add(worker.tunnel_counters[stage.input->index].failed, 1);
    fail_item(worker, stage, item, status);
    if (ended()) break;
    rest.items = item + stage.input->item_bytes;
    rest.count -= done + 1;
  }
  settle(worker, stage, batch, outputs);
}

weir_item* Flow::keep(StageCall& call, std::size_t index) {
  if (call.items == nullptr) {
    fail_argument("stage '{}' has no items in this call that it could keep", call.stage->name);
  }
  const auto same = [&](const StageCall::Retained& each) { return each.index == index; };
  if (index >= call.count || std::any_of(call.retained.begin(), call.retained.end(), same)) {
    fail_argument("stage '{}' cannot keep item {} of a batch of {}: {}", call.stage->name, index,
                  call.count, index >= call.count ? "there is none" : "it does already");
  }
  call.retained.reserve(call.retained.size() + 1);
  call.unsettled.reserve(call.unsettled.size() + call.retained.size() + 1);
  weir_item* const item = retained_items_->keep(*this, *call.stage, call.tag);
  call.retained.push_back({index, item->number});
  return item;
}

/// Of the items that a call retained, keeps those among the first `done`; a failed item is not
/// retained, and the items after it are delivered again.
void Flow::note_retained(FlowWorker& worker, std::size_t done) noexcept {
  for (const StageCall::Retained& each : worker.call.retained) {
    if (each.index < done) {
      worker.call.unsettled.push_back(each.number);
    } else {
      retained_items_->forget(each.number);
    }
  }
}

void Flow::complete(weir_item* item) {
  sys::Lock ending(RetainedItems::ends());
  const weir_item& live = weir_item::check(item);
  Flow& flow = live.flow;
  Stage& stage = live.stage;
  const ItemTag tag = live.tag;
  const bool epochs = flow.options_.epochs > 0;
  const std::size_t slot = epochs ? flow.slot_of(tag.epoch) : 0;
  const ScopedVisit visit(flow);
  const bool counted = flow.retained_items_->complete(live, epochs ? &slot : nullptr);
  ending.unlock();
  if (counted && tag.sampled()) stage.latencies.note(flow.now_ns() - tag.timestamp_ns, 1);
  flow.wake_one();
}

weir_status Flow::call(FlowWorker& worker, Stage& stage, weir_stage_function function,
                       const WorkerBuffer::Batch& batch, const Outputs& outputs) noexcept {
  StageCall& call = worker.call;
  call.items = batch.items;
  call.count = batch.count;
  call.index = 0;
  call.outlets = outputs.outlets.data();
  call.outlet_count = outputs.outlets.size();
  call.epoch = batch.tag.epoch;
  call.payload = stage.payload;
  call.stage = &stage;
  call.tag = batch.tag;
  call.retained.clear();
  call.busy_ns = -1;
  call.message[0] = '\0';
  BatchSize& pace = worker.pace[stage.index];
  const bool timed = pace.due();
  const std::int64_t begin = timed ? sys::now_ns() : 0;
  weir_status status = WEIR_STATUS_OK;
  try {
    status = function(&call);
  } catch (...) {
    const Outcome thrown = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    status = thrown.status;
    call.fail(thrown.message.c_str());
  }
  worker.call_began_ns = timed ? begin : ItemTag::kNotSampled;
  if (timed) {
    const std::int64_t all = sys::now_ns() - begin;
    const std::int64_t busy =
        pace.note(batch.count, call.busy_ns >= 0 ? std::min(call.busy_ns, all) : all);
    if (!pass_time_) {
      TunnelCounters::add(worker.stage_counters[stage.index].busy_ns,
                          static_cast<std::uint64_t>(busy));
    }
  }
  return status;
}

/// Counts the items that a call has put, then those it has completed. Returns whether it has put
/// any.
bool Flow::settle(FlowWorker& worker, Stage& stage, const WorkerBuffer::Batch& batch,
                  Outputs& outputs) noexcept {
  std::size_t created = 0;
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
    created += count_created(worker, stage, *stage.outputs[i], *outputs.buffers[i], batch.tag);
  }
  Count* const epoch = options_.epochs > 0 ? &worker.epochs[slot_of(batch.tag.epoch)] : nullptr;
  if (epoch != nullptr) epoch->create(created);
  TunnelCounters::add(worker.stage_counters[stage.index].put, created);
  std::size_t complete = batch.count;
  if (!worker.call.unsettled.empty()) {
    complete -= retained_items_->settle(worker.call.unsettled);
    worker.call.unsettled.clear();
  }
  if (complete > 0 && batch.tag.sampled()) {
    stage.latencies.note(now_ns() - batch.tag.timestamp_ns, complete);
  }
  if (complete > 0) {
    if (epoch != nullptr) epoch->complete(complete);  // epochs first: the pipeline ends last
    worker.tunnel_counters[stage.input->index].count.complete(complete);
  }
  for (Tunnel* tunnel : stage.outputs) {
    if (tunnel->queued || options_.relief != WEIR_RELIEF_BOTH ||
        tunnel->stage->group != stage.group) {
      flush(worker, *tunnel);
    }
  }
  return created > 0;
}

std::size_t Flow::count_created(FlowWorker& worker, const Stage& stage, const Tunnel& tunnel,
                                WorkerBuffer& kept, const ItemTag& tag) noexcept {
  std::size_t put = 0;
  try {
    put = kept.count(tag);
  } catch (...) {  // no memory to note another epoch
    kept.forget_uncounted();
    worker.call.fail("no memory for items of another epoch");
    fail_item(worker, stage, nullptr, WEIR_STATUS_OUT_OF_MEMORY);
  }
  if (put > 0) {
    TunnelCounters& counters = worker.tunnel_counters[tunnel.index];
    counters.count.create(put);
    if (kept.size() > counters.most_kept.load(std::memory_order_relaxed)) {
      counters.most_kept.store(kept.size(), std::memory_order_relaxed);
    }
  }
  return put;
}

void Flow::fail_item(FlowWorker& worker, const Stage& stage, const void* item,
                     weir_status status) noexcept {
  const char* const why =
      worker.call.message[0] != '\0' ? worker.call.message : status_name(status);
  report_failure({stage.name.c_str(), item, status, why, 1});
}

void Flow::report_failure(const weir_item_failure& failure) noexcept {
  char message[640];
  std::snprintf(message, sizeof message, "stage '%.100s': %s", failure.stage, failure.message);
  note_failure(failure.status, message);  // before on_failure, which may end the pipeline
  if (options_.on_failure != nullptr) {
    mark_reported();
    guarded([&] { options_.on_failure(&failure, options_.payload); });
  }
  if (!options_.keep_going) stop(failure.status, message);
}

// ---- Moving ------------------------------------------------------------------------------------

Flow::Counters Flow::counters_of(FlowWorker& worker, const Tunnel& tunnel) noexcept {
  TunnelCounters& counters = worker.tunnel_counters[tunnel.index];
  return {counters.count, worker.epochs.get(), counters.dropped};
}

/// Moves the items that a worker keeps to the rings, as far as there is room.
bool Flow::flush(FlowWorker& worker, Tunnel& tunnel) noexcept {
  return flush(worker, tunnel, *worker.buffers[tunnel.index]);
}

bool Flow::flush(FlowWorker& worker, Tunnel& tunnel, WorkerBuffer& kept) noexcept {
  bool moved = false;
  while (!kept.empty()) {
    const WorkerBuffer::Batch batch = kept.oldest();
    const std::size_t done = offer(counters_of(worker, tunnel), tunnel, {batch.items, batch.tag},
                                   batch.count, [](std::size_t) {});
    if (done == 0) break;
    kept.drop_oldest(done);
    moved = true;
  }
  return moved;
}

/// Moves the items that the worker keeps and cannot work on to the ring.
bool Flow::flush_all(FlowWorker& worker) noexcept {
  bool moved = false;
  for (const auto& tunnel : tunnels_) {
    if (!worker.buffers[tunnel->index]->empty()) moved = flush(worker, *tunnel) || moved;
  }
  leave_held(worker);
  return moved;
}

/// Leaves the held stages whose output items are all in the rings.
void Flow::leave_held(FlowWorker& worker) noexcept {
  std::erase_if(worker.held, [&](Stage* stage) {
    if (worker.keeps_in_order(*stage)) return false;
    stage->permit.leave();
    wake_one_of(worker.group);
    return true;
  });
}

bool Flow::send_ordered(FlowWorker& worker) noexcept {
  bool sent = false;
  for (Stage* stage : worker.group.stages) {
    if (stage->reorder && stage->reorder->ready()) sent = send_ordered(worker, *stage) || sent;
  }
  return sent;
}

/// Returns whether anything was sent.
bool Flow::send_ordered(FlowWorker& worker, Stage& stage) noexcept {
  bool moved = false;
  stage.reorder->send([&](Reorder::Block& block) {
    Outputs& outputs = block.outputs;
    if (stage.executor != nullptr && !block.collected) {
      collect_batch(worker, stage, block);
      moved = true;
    }
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      moved = flush(worker, *stage.outputs[i], *outputs.buffers[i]) || moved;
    }
    moved = moved || outputs.empty();
    if (outputs.empty()) block.collected = false;
    return outputs.empty();
  });
  if (moved) wake_one_of(worker.group);
  return moved;
}

std::size_t Flow::pop(Tunnel& tunnel, const ItemsToTake& to, std::size_t count) const noexcept {
  std::size_t found = 0, more = 1;
  for (; found < count && more > 0; found += more) {
    more = tunnel.ring.pop(ItemsToTake{to.items + found * tunnel.item_bytes, to.tags + found},
                           at_once(count - found));
    if (!one_by_one()) return more;
  }
  return found;
}

void Flow::drop(const Counters& counters, std::uint64_t epoch, std::size_t count) const noexcept {
  TunnelCounters::add(counters.dropped, count);
  if (options_.epochs > 0) counters.epochs[slot_of(epoch)].complete(count);
  counters.count.complete(count);
}

/// Drops the oldest waiting items; if other threads are putting or taking these, yields.
void Flow::drop_waiting(const Counters& counters, Tunnel& tunnel, std::size_t count) noexcept {
  constexpr std::size_t kAtOnce = 64;
  ItemTag tags[kAtOnce];
  const std::size_t found =
      tunnel.ring.pop(ItemsToTake{nullptr, tags}, at_once(std::min(count, kAtOnce)));
  for (std::size_t i = 0; i < found; ++i) drop(counters, tags[i].epoch, 1);
  if (found == 0) sys::yield();
}

/// Moves the older half of the worker's items to the ring for idle workers, or only the oldest item
/// if items are claimed one by one.
void Flow::share(FlowWorker& worker) noexcept {
  WorkerGroup& group = worker.group;
  if (group.idle_workers.load(std::memory_order_relaxed) == 0) return;
  for (auto each = group.stages.rbegin(); each != group.stages.rend(); ++each) {
    Tunnel& tunnel = *(*each)->input;
    WorkerBuffer& kept = *worker.buffers[tunnel.index];
    if (kept.size() <= worker.pace[(*each)->index].items()) continue;
    WorkerBuffer::Batch batch = kept.oldest();
    batch.count = at_once(std::min(batch.count, kept.size() / 2));
    kept.drop_oldest(tunnel.ring.push(ItemsToPut{batch.items, batch.tag}, batch.count));
    wake_group_of(tunnel);
    return;
  }
}

/// Notifies workers and feeds that a tunnel has room.
void Flow::on_room(Tunnel& tunnel) noexcept {
  tunnel.room.ring();
  stuck_.ring();
}

// ---- Idling ------------------------------------------------------------------------------------

/// Called by a busy worker every kPassesPerCheck passes.
void Flow::check_others(FlowWorker& worker) noexcept {
  wake_one_of(worker.group);
  if (reports_ends_) check_ends(worker);
}

void Flow::spin_then_park(FlowWorker& worker) noexcept {
  if (pass_time_) return advance_time(worker);
  if (check_ends(worker)) return;
  for (unsigned i = 0; i < kBriefly; ++i) {
    sys::pause();
    if (ended() || has_work(worker)) return;
  }
  if (check_ends(worker)) return;
  WorkerGroup& group = worker.group;
  group.idle_workers.fetch_add(1, std::memory_order_relaxed);
  const std::int64_t deadline = sys::now_ns() + kSpinNs;
  bool found = false;
  do {
    sys::yield();
    found = ended() || has_work(worker);
  } while (!found && sys::now_ns() < deadline);
  if (!found) park(worker);
  group.idle_workers.fetch_sub(1, std::memory_order_relaxed);
}

/// In virtual time: an idle worker advances time.
void Flow::advance_time(FlowWorker& worker) noexcept {
  constexpr std::int64_t kNapNs = 1'000'000;
  if (check_ends(worker) || ended() || has_work(worker) || pass_time_()) return;
  stuck_.listen(sys::now_ns() + kNapNs, [&] { return ended() || has_work(worker); });
}

/// A Parking wakes any one of its sleepers, so a worker that keeps items sleeps on stuck_ instead,
/// which wakes it for every change.
void Flow::park(FlowWorker& worker) noexcept {
  const auto stirs = [&] { return ended() || has_work(worker) || check_ends(worker); };
  if (stuck(worker)) {
    stuck_.listen(sys::kNever, stirs);
    return;
  }
  Parking& parking = worker.group.parking;
  parking.prepare();
  if (stirs()) {
    parking.cancel();
  } else {
    parking.park();
  }
}

/// Whether items wait for room that another worker makes.
bool Flow::stuck(const FlowWorker& worker) const noexcept {
  return worker.keeps_something() ||
         std::any_of(worker.group.stages.begin(), worker.group.stages.end(),
                     [](const Stage* stage) { return stage->reorder && stage->reorder->ready(); });
}

bool Flow::can_send(const Stage& stage) noexcept {
  return stage.newest_first ||
         std::all_of(stage.outputs.begin(), stage.outputs.end(),
                     [](const Tunnel* tunnel) { return tunnel->ring.has_room(); });
}

/// Whether step() may find something to do.
bool Flow::has_work(const FlowWorker& worker) const noexcept {
  for (const Stage* stage : worker.group.stages) {
    const bool enters = !stage->limited || stage->permit.free();
    const bool takes = enters && !worker.keeps_for_others(*stage);
    const Tunnel& tunnel = *stage->input;
    if (stage->reorder && stage->reorder->ready() && can_send(*stage)) return true;
    if (stage->executor != nullptr) {
      const std::size_t kept = tunnel.queued ? 0 : worker.buffers[tunnel.index]->size();
      if (can_load(*stage, kept) || can_load_waiting(*stage)) return true;
      continue;
    }
    if (takes && tunnel.ring.ready() && (!stage->reorder || stage->reorder->open())) return true;
    if (enters && !tunnel.queued && !worker.buffers[tunnel.index]->empty()) return true;
  }
  bool keeps = false;
  for (const auto& tunnel : tunnels_) {
    if (worker.buffers[tunnel->index]->empty()) continue;
    if (tunnel->ring.has_room()) return true;
    keeps = true;
  }
  return !keeps && std::any_of(worker.group.sources.begin(), worker.group.sources.end(),
                               [&](const Stage* source) { return can_run(*source); });
}

/// Before the start there are no groups: workers check all tunnels when they begin.
void Flow::wake_group_of(const Tunnel& tunnel) noexcept {
  stuck_.ring();
  if (sealed()) groups_[tunnel.stage->group].parking.unpark_one();
}

void Flow::wake_one_of(WorkerGroup& group) noexcept {
  group.parking.unpark_one();
  stuck_.ring();
}

void Flow::wake_one() noexcept {
  stuck_.ring();
  if (!sealed()) return;  // groups are being created
  for (WorkerGroup& group : groups_) {
    if (group.parking.unpark_one()) return;
  }
}

void Flow::wake_workers() noexcept {
  stuck_.ring();
  if (!sealed()) return;
  for (WorkerGroup& group : groups_) group.parking.unpark_all();
}

void Flow::wake_everybody() noexcept {
  done_.ring();
  wake_workers();
  for (const auto& tunnel : tunnels_) tunnel->room.ring();
}

}  // namespace weir::rt
