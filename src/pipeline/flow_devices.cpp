// The work of workers for stages whose batches run on a device.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "base/thread_role.hpp"
#include "pipeline/flow.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUnderWay = 2;  ///< batches that keep a device and its link busy

/// Gives a batch the timestamp of the first item that has one.
void take_timestamp(ItemTag& batch, std::span<const ItemTag> items) noexcept {
  const auto first =
      std::find_if(items.begin(), items.end(), [](const ItemTag& item) { return item.sampled(); });
  if (!batch.sampled() && first != items.end()) batch.timestamp_ns = first->timestamp_ns;
}

}  // namespace

void OffloadExecutor::on_batch_complete(std::size_t slot) noexcept {
  flow_->on_batch_complete(*stage_, slot);
}

void Flow::on_batch_complete(Stage& stage, std::size_t slot) noexcept {
  Reorder::Block& block = stage.reorder->blocks()[slot];
  const std::int64_t now = now_ns();
  const std::int64_t before = stage.last_batch_ns.exchange(now, std::memory_order_relaxed);
  const std::int64_t busy = now - std::max(block.launched_ns, before);
  if (busy > 0) {
    stage.busy_ns.fetch_add(static_cast<std::uint64_t>(busy), std::memory_order_relaxed);
  }
  const Outcome& outcome = stage.executor->outcome(slot);
  if (!outcome.ok()) report_batch(stage, block, outcome);
  block.ready.store(true, std::memory_order_seq_cst);
  wake_one_of(groups_[stage.group]);
}

/// A thread that waits for the end also waits for this thread, as for a worker.
void Flow::report_batch(Stage& stage, const Reorder::Block& block,
                        const Outcome& outcome) noexcept {
  working_.fetch_add(1, std::memory_order_seq_cst);
  if (state_.load(std::memory_order_seq_cst) == kOpen) fail_batch(stage, block, outcome);
  working_.fetch_sub(1, std::memory_order_seq_cst);
  done_.ring();
}

/// Whether to launch a batch with this many items: a full batch, or any if fewer than kUnderWay are
/// in flight.
bool Flow::can_load(const Stage& stage, std::size_t items) noexcept {
  if (items == 0 || !stage.reorder->open()) return false;
  return items >= stage.executor->room() || stage.reorder->under_way() < kUnderWay;
}

bool Flow::can_load_waiting(const Stage& stage) noexcept {
  const std::size_t left =
      stage.leftover ? stage.leftover->count.load(std::memory_order_seq_cst) : 0;
  const Ring<ItemCells>& ring = stage.input->ring;
  if (left == 0 && !ring.ready()) return false;
  // A full ring gets no more items.
  const std::size_t waiting = ring.has_room() ? ring.size() : stage.executor->room();
  return can_load(stage, std::max<std::size_t>(left + waiting, 1));
}

bool Flow::load_waiting(FlowWorker& worker, Stage& stage) noexcept {
  if (!can_load_waiting(stage)) return false;
  Reorder::Block* const block = stage.reorder->take(
      [&](Reorder::Block& next) { return (next.count = fill(stage, next)) > 0; });
  if (block == nullptr) return false;
  on_room(*stage.input);
  if (stage.input->ring.ready()) wake_one_of(worker.group);
  launch_batch(stage, *block);
  return true;
}

/// In a loop: the worker's own items first, newest first.
bool Flow::load_kept(FlowWorker& worker, Stage& stage) noexcept {
  WorkerBuffer& kept = *worker.buffers[stage.input->index];
  if (stage.input->queued || !can_load(stage, kept.size())) return false;
  Reorder::Block* const block = stage.reorder->take([&](Reorder::Block& next) {
    const WorkerBuffer::Batch batch = kept.take_newest(stage.executor->room());
    const std::size_t slot = static_cast<std::size_t>(&next - stage.reorder->blocks().data());
    std::memcpy(stage.executor->items(slot), batch.items, batch.count * stage.input->item_bytes);
    next.first = stage.taken;
    next.count = batch.count;
    next.tag = batch.tag;
    stage.taken = stage.taken + batch.count;
    return true;
  });
  if (block == nullptr) return false;
  launch_batch(stage, *block);
  return true;
}

/// Fills a batch with waiting items of one epoch. Returns their number.
std::size_t Flow::fill(Stage& stage, Reorder::Block& block) noexcept {
  const std::size_t bytes = stage.input->item_bytes, room = stage.executor->room();
  const std::size_t slot = static_cast<std::size_t>(&block - stage.reorder->blocks().data());
  unsigned char* const items = stage.executor->items(slot);
  block.first = stage.taken;
  std::size_t found = 0;
  if (!stage.leftover) {
    constexpr std::size_t kAtOnce = 256;
    ItemTag tags[kAtOnce];
    block.tag = {};
    for (std::size_t more = 1; more > 0 && found < room; found += more) {
      more = pop(*stage.input, {items + found * bytes, tags}, std::min(kAtOnce, room - found));
      take_timestamp(block.tag, {tags, more});
    }
  } else {
    Leftover& left = *stage.leftover;
    std::size_t had = left.count.load(std::memory_order_relaxed);
    std::memcpy(items, left.items.get(), had * bytes);
    had += pop(*stage.input, {items + had * bytes, left.tags.data() + had}, room - had);
    while (found < had && left.tags[found].epoch == left.tags[0].epoch) ++found;
    block.tag = {left.tags[0].epoch};
    take_timestamp(block.tag, {left.tags.data(), found});
    std::memcpy(left.items.get(), items + found * bytes, (had - found) * bytes);
    left.tags.erase(left.tags.begin(), left.tags.begin() + static_cast<std::ptrdiff_t>(found));
    left.tags.resize(room);
    left.count.store(had - found, std::memory_order_seq_cst);
  }
  stage.taken = stage.taken + found;
  return found;
}

void Flow::launch_batch(Stage& stage, Reorder::Block& block) const noexcept {
  block.launched_ns = now_ns();
  stage.executor->launch(static_cast<std::size_t>(&block - stage.reorder->blocks().data()),
                         block.count);
}

/// Puts and counts the results of a batch, then counts the batch as complete. In a loop the worker
/// keeps the results, so that the device never waits for room that only it can make.
void Flow::collect_batch(FlowWorker& worker, Stage& stage, Reorder::Block& block) noexcept {
  const std::size_t slot = static_cast<std::size_t>(&block - stage.reorder->blocks().data());
  Outputs& outputs = stage.newest_first ? worker.outputs[stage.index] : block.outputs;
  if (stage.executor->outcome(slot).ok()) {
    try {
      stage.executor->collect(slot, outputs);
    } catch (...) {
      const Outcome thrown = current_exception_outcome(WEIR_STATUS_INTERNAL);
      for (WorkerBuffer* buffer : outputs.buffers) buffer->forget_uncounted();
      fail_batch(stage, block, thrown);
    }
  }
  settle(worker, stage, {nullptr, block.count, block.tag}, outputs);
  block.collected = true;
}

void Flow::fail_batch(Stage& stage, const Reorder::Block& block, const Outcome& outcome) noexcept {
  const NoWaitScope telling;
  const std::size_t slot = static_cast<std::size_t>(&block - stage.reorder->blocks().data());
  stage.failed.fetch_add(block.count, std::memory_order_relaxed);
  char message[512];
  std::snprintf(message, sizeof message, "items %llu to %llu: %s",
                static_cast<unsigned long long>(block.first),
                static_cast<unsigned long long>(block.first + block.count - 1),
                outcome.message.empty() ? status_name(outcome.status) : outcome.message.c_str());
  report_failure(
      {stage.name.c_str(), stage.executor->items(slot), outcome.status, message, block.count});
}

}  // namespace weir::rt
