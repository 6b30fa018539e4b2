#include "pipeline/offload_batches.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <span>

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

void OffloadExecutor::on_batch_complete(std::size_t slot) noexcept { batches_->on_complete(slot); }

OffloadBatches::OffloadBatches(Flow& flow, Stage& stage, OffloadExecutor& executor)
    : flow_(flow), stage_(stage), executor_(executor) {
  if (stage.input == nullptr) {
    fail_argument("source '{}' cannot be a kernel: it has no input", stage.name);
  }
  if (stage.function != nullptr || stage.at_end != nullptr) {
    fail_argument("stage '{}' has a kernel and a function: leave one out", stage.name);
  }
  Tunnel& input = *stage.input;  // batches are gathered in its ring
  if (!input.sized && !input.fed && executor.room() > input.ring.capacity()) {
    input.ring.grow(executor.room(), input.item_bytes);
  }
  stage.reorder = std::make_unique<Reorder>(executor.slots());
  if (flow.epochs.enabled()) {
    leftover_items_ = std::make_unique<unsigned char[]>(executor.room() * input.item_bytes);
    leftover_tags_.resize(executor.room());
  }
  executor.attach(*this);
}

bool OffloadBatches::can_load(std::size_t items) const noexcept {
  if (items == 0 || !stage_.reorder->open()) return false;
  return items >= executor_.room() || stage_.reorder->under_way() < kUnderWay;
}

bool OffloadBatches::can_load_waiting() const noexcept {
  const std::size_t leftover = leftover_.load(std::memory_order_seq_cst);
  const Ring<ItemCells>& ring = stage_.input->ring;
  if (leftover == 0 && !ring.ready()) return false;
  // A full ring gets no more items.
  const std::size_t waiting = ring.has_room() ? ring.size() : executor_.room();
  return can_load(std::max<std::size_t>(leftover + waiting, 1));
}

bool OffloadBatches::load_waiting() noexcept {
  if (!can_load_waiting()) return false;
  Reorder::Block* const block =
      stage_.reorder->take([&](Reorder::Block& next) { return (next.count = fill(next)) > 0; });
  if (block != nullptr) flow_.groups.on_taken(stage_);
  return launch(block);
}

bool OffloadBatches::load_from(WorkerBuffer& kept) noexcept {
  if (stage_.input->queued || !can_load(kept.size())) return false;
  return launch(stage_.reorder->take([&](Reorder::Block& next) {
    const WorkerBuffer::Batch batch = kept.take_newest(executor_.room());
    std::memcpy(executor_.items(slot_of(next)), batch.items,
                batch.count * stage_.input->item_bytes);
    next.first = taken_;
    next.count = batch.count;
    next.tag = batch.tag;
    taken_ = taken_ + batch.count;
    return true;
  }));
}

/// Fills a batch with waiting items of one epoch. Returns their number.
std::size_t OffloadBatches::fill(Reorder::Block& block) noexcept {
  const std::size_t bytes = stage_.input->item_bytes, room = executor_.room();
  unsigned char* const items = executor_.items(slot_of(block));
  block.first = taken_;
  std::size_t found = 0;
  if (!leftover_items_) {
    constexpr std::size_t kAtOnce = 256;
    ItemTag tags[kAtOnce];
    block.tag = {};
    for (std::size_t more = 1; more > 0 && found < room; found += more) {
      more = flow_.access.pop(*stage_.input, {items + found * bytes, tags},
                              std::min(kAtOnce, room - found));
      take_timestamp(block.tag, {tags, more});
    }
  } else {
    std::size_t had = leftover_.load(std::memory_order_relaxed);
    std::memcpy(items, leftover_items_.get(), had * bytes);
    had += flow_.access.pop(*stage_.input, {items + had * bytes, leftover_tags_.data() + had},
                            room - had);
    while (found < had && leftover_tags_[found].epoch == leftover_tags_[0].epoch) ++found;
    block.tag = {leftover_tags_[0].epoch};
    take_timestamp(block.tag, {leftover_tags_.data(), found});
    std::memcpy(leftover_items_.get(), items + found * bytes, (had - found) * bytes);
    leftover_tags_.erase(leftover_tags_.begin(),
                         leftover_tags_.begin() + static_cast<std::ptrdiff_t>(found));
    leftover_tags_.resize(room);
    leftover_.store(had - found, std::memory_order_seq_cst);
  }
  taken_ = taken_ + found;
  return found;
}

/// Launches a batch unless null. Returns whether it did.
bool OffloadBatches::launch(Reorder::Block* block) const noexcept {
  if (block == nullptr) return false;
  block->launched_ns = flow_.clock.now_ns();
  executor_.launch(slot_of(*block), block->count);
  return true;
}

void OffloadBatches::on_complete(std::size_t slot) noexcept {
  Reorder::Block& block = stage_.reorder->blocks()[slot];
  assert(!block.ready.load(std::memory_order_relaxed));  // exactly once for each launch
  const std::int64_t now = flow_.clock.now_ns();
  const std::int64_t before = last_batch_ns_.exchange(now, std::memory_order_relaxed);
  const std::int64_t busy = now - std::max(block.launched_ns, before);
  if (busy > 0) busy_ns_.fetch_add(static_cast<std::uint64_t>(busy), std::memory_order_relaxed);
  const Outcome& outcome = executor_.outcome(slot);
  if (!outcome.ok()) {
    flow_.completion.enter();
    if (!flow_.completion.ended()) fail(block, outcome);
    flow_.completion.leave();
  }
  block.ready.store(true, std::memory_order_seq_cst);
  flow_.groups.wake_one_of(flow_.groups[stage_.group]);
}

void OffloadBatches::collect(const Reorder::Block& block, const Outputs& outputs) noexcept {
  const std::size_t slot = slot_of(block);
  if (!executor_.outcome(slot).ok()) return;
  try {
    executor_.collect(slot, outputs);
  } catch (...) {
    const Outcome thrown = current_exception_outcome(WEIR_STATUS_INTERNAL);
    for (WorkerBuffer* buffer : outputs.buffers) buffer->forget_uncounted();
    fail(block, thrown);
  }
}

void OffloadBatches::fail(const Reorder::Block& block, const Outcome& outcome) noexcept {
  const NoWaitScope reporting;
  failed_.fetch_add(block.count, std::memory_order_relaxed);
  char message[512];
  std::snprintf(message, sizeof message, "items %llu to %llu: %s",
                static_cast<unsigned long long>(block.first),
                static_cast<unsigned long long>(block.first + block.count - 1),
                outcome.message.empty() ? status_name(outcome.status) : outcome.message.c_str());
  flow_.completion.report(
      {stage_.name.c_str(), executor_.items(slot_of(block)), outcome.status, message, block.count});
}

}  // namespace weir::rt
