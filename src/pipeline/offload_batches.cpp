#include "pipeline/offload_batches.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUnderWay = 2;    ///< batches that keep a device and its link busy
constexpr std::size_t kUnmeasured = 3;  ///< batches in flight before one is measured
constexpr std::int64_t kPatienceNs = 100'000;

/// Gives a batch the timestamp of the first item that has one.
void take_timestamp(ItemTag& batch, std::span<const ItemTag> items) noexcept {
  const auto first =
      std::find_if(items.begin(), items.end(), [](const ItemTag& item) { return item.sampled(); });
  if (!batch.sampled() && first != items.end()) batch.timestamp_ns = first->timestamp_ns;
}

}  // namespace

void OffloadExecutor::on_batch_complete(std::size_t slot) noexcept { batches_->on_complete(slot); }

OffloadBatches::OffloadBatches(FlowContext& flow, Stage& stage, OffloadExecutor& executor)
    : flow_(flow),
      stage_(stage),
      executor_(executor),
      target_(executor.first_batch(), executor.room(), executor.known_costs()) {
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

bool OffloadBatches::can_load(std::size_t items, Load wanted) const noexcept {
  if (items == 0 || !stage_.reorder->open()) return false;
  const std::size_t under_way = stage_.reorder->under_way();
  if (items >= target_.items()) return target_.measured() || under_way < kUnmeasured;
  return wanted == Load::any && (under_way < kUnderWay || items >= target_.least());
}

/// Returns the number of items that wait for a batch; a full ring gets no more items.
std::size_t OffloadBatches::waiting() const noexcept {
  const std::size_t leftover = leftover_.load(std::memory_order_seq_cst);
  const Ring<ItemCells>& ring = stage_.input->ring;
  if (!ring.ready()) return leftover;
  if (!ring.has_room()) return std::max(leftover + ring.size(), executor_.room());
  return leftover + std::max<std::size_t>(ring.size(), 1);
}

bool OffloadBatches::can_load_waiting(Load wanted) const noexcept {
  return can_load(waiting(), wanted);
}

/// Returns how many of some waiting items a batch gets: about as many as wanted, so that no small
/// batch remains.
std::size_t OffloadBatches::share_of(std::size_t items) const noexcept {
  const std::size_t target = target_.items();
  if (target_.fixed()) return std::clamp<std::size_t>(items, 1, target);
  const std::size_t wanted = target_.items_of(items, in_flight_.load(std::memory_order_relaxed));
  const std::size_t batches = std::max<std::size_t>((items + wanted / 2) / wanted, 1);
  return std::clamp<std::size_t>((items + batches - 1) / batches, 1, executor_.room());
}

/// Whether items wait for an idle device while all workers are busy: then they do not wait for a
/// full batch.
bool OffloadBatches::waits_for_workers() noexcept {
  if (flow_.clock.is_virtual() || stage_.reorder->under_way() > 0) return false;
  const std::int64_t now = flow_.clock.now_ns();
  const std::int64_t since = waiting_since_ns_.load(std::memory_order_relaxed);
  if (since == kNotWaiting) waiting_since_ns_.store(now, std::memory_order_relaxed);
  return since != kNotWaiting && now - since >= kPatienceNs;
}

bool OffloadBatches::load_waiting(Load wanted) noexcept {
  if (!can_load_waiting(wanted)) {
    if (wanted == Load::any || !can_load_waiting(Load::any) || !waits_for_workers()) return false;
  }
  Reorder::Block* const block =
      stage_.reorder->take([&](Reorder::Block& next) { return fill(next) > 0; });
  if (block != nullptr) flow_.groups.on_taken(stage_);
  return launch(block);
}

bool OffloadBatches::load_from(WorkerBuffer& kept, Load wanted) noexcept {
  if (stage_.input->queued || !can_load(kept.size(), wanted)) return false;
  return launch(stage_.reorder->take([&](Reorder::Block& next) {
    const std::size_t slot = slot_of(next);
    const std::size_t share = share_of(kept.size());
    const WorkerBuffer::Batch batch =
        kept.take_newest(std::min(share, executor_.reserve(slot, share)));
    std::memcpy(executor_.items(slot), batch.items, batch.count * stage_.input->item_bytes);
    next.first = taken_;
    next.count = batch.count;
    next.tag = batch.tag;
    note_taken(batch.count);
    return true;
  }));
}

/// Fills a batch with waiting items of one epoch. Returns their number.
std::size_t OffloadBatches::fill(Reorder::Block& block) noexcept {
  const std::size_t slot = slot_of(block), bytes = stage_.input->item_bytes;
  const std::size_t share = share_of(std::max<std::size_t>(waiting(), 1));
  const std::size_t room = std::min(share, executor_.reserve(slot, share));
  unsigned char* const items = executor_.items(slot);
  block.first = taken_;
  block.count = 0;
  if (!leftover_items_) {
    constexpr std::size_t kAtOnce = 256;
    ItemTag tags[kAtOnce];
    block.tag = {};
    for (std::size_t more = 1; more > 0 && block.count < room; block.count += more) {
      more = flow_.access.pop(*stage_.input, {items + block.count * bytes, tags},
                              std::min(kAtOnce, room - block.count));
      take_timestamp(block.tag, {tags, more});
    }
  } else {
    fill_with_one_epoch(block, items, room);
  }
  note_taken(block.count);
  return block.count;
}

void OffloadBatches::note_taken(std::size_t items) noexcept {
  if (items == 0) return;
  taken_ = taken_ + items;
  in_flight_.fetch_add(items, std::memory_order_relaxed);
  waiting_since_ns_.store(kNotWaiting, std::memory_order_relaxed);
  target_.note_launch();
}

/// Takes the items left over from the last batch, then items from the ring. Those behind the first
/// of another epoch are left over.
void OffloadBatches::fill_with_one_epoch(Reorder::Block& block, unsigned char* items,
                                         std::size_t wanted) noexcept {
  const std::size_t bytes = stage_.input->item_bytes;
  ItemTag* const tags = leftover_tags_.data();
  const std::size_t had = leftover_.load(std::memory_order_relaxed);
  std::size_t taken = std::min(had, wanted);
  std::memcpy(items, leftover_items_.get(), taken * bytes);
  taken += flow_.access.pop(*stage_.input, {items + taken * bytes, tags + taken},
                            had < wanted ? wanted - had : 0);
  std::size_t& found = block.count;
  while (found < taken && tags[found].epoch == tags[0].epoch) ++found;
  block.tag = {tags[0].epoch};
  take_timestamp(block.tag, {tags, found});
  const std::size_t all = std::max(had, taken);
  const unsigned char* const from = had > taken ? leftover_items_.get() : items;
  std::memmove(leftover_items_.get(), from + found * bytes, (all - found) * bytes);
  std::move(tags + found, tags + all, tags);
  leftover_.store(all - found, std::memory_order_seq_cst);
}

/// Launches a batch unless null. Returns whether it did.
bool OffloadBatches::launch(Reorder::Block* block) noexcept {
  if (block == nullptr) return false;
  block->launched_ns = flow_.clock.now_ns();
  executor_.launch(slot_of(*block), block->count);
  return true;
}

void OffloadBatches::on_complete(std::size_t slot) noexcept {
  Reorder::Block& block = stage_.reorder->blocks()[slot];
  assert(!block.ready.load(std::memory_order_relaxed));  // exactly once for each launch
  const std::int64_t now = block.completed_ns = flow_.clock.now_ns();
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
  in_flight_.fetch_sub(block.count, std::memory_order_relaxed);
  if (!executor_.outcome(slot).ok()) return;
  target_.note(block.count, block.launched_ns, block.completed_ns);
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
