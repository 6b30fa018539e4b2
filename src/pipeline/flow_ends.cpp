// Termination of stages, epochs and pipelines.
#include <algorithm>
#include <utility>

#include "pipeline/flow.hpp"
#include "pipeline/flow_templates.hpp"

namespace weir::rt {

/// Checks for stages, epochs and the pipeline that have ended. If another thread is checking, makes
/// it check again and returns false. Returns whether anything has ended.
bool Flow::check_ends(FlowWorker& worker) noexcept {
  if (checks_.fetch_add(1, std::memory_order_acq_rel) > 0) return false;
  bool found = false;
  for (std::uint32_t served = 1; served > 0;) {
    while (!ended() && find_ends(worker)) found = true;
    served = checks_.fetch_sub(served, std::memory_order_acq_rel) - served;
  }
  return found;
}

/// Called by the checking thread: ends all complete components and epochs. Returns whether any
/// ended.
bool Flow::find_ends(FlowWorker& worker) noexcept {
  bool found = false, all = true;
  for (Component& component : components_) {
    if (!component.over && is_over(component)) {
      end(worker, component);
      found = true;
    }
    all = all && component.over;
  }
  if (options_.epochs > 0 && find_epochs()) found = true;
  if (all && !ended()) finish();
  return found;
}

bool Flow::is_over(const Component& component) noexcept {
  for (const std::size_t producer : component.producers) {
    if (!components_[producer].over) return false;
  }
  for (const Stage* stage : component.stages) {
    if (stage->input == nullptr) return stage->permit.over();
    if (stage->input->open_feeds.load(std::memory_order_seq_cst) > 0) return false;
  }
  retained_items_->synchronize();
  {
    const sys::Lock lock(feeds_mutex_);
    const bool complete = balanced([&](const auto& visit) WEIR_REQUIRES(feeds_mutex_) {
      for (const Stage* stage : component.stages) each_count(stage->input->index, visit);
    });
    if (!complete) return false;
  }
  // Check last: until the counts balance a batch may still be taken, and it is complete before it
  // is sent.
  return std::all_of(component.stages.begin(), component.stages.end(), has_sent);
}

/// Whether an ordered stage whose items are complete has sent all their results.
bool Flow::has_sent(const Stage* stage) noexcept {
  if (stage->reorder && !stage->reorder->empty()) return false;
  return stage->order_preserving.empty() || stage->permit.free();
}

void Flow::end(FlowWorker& worker, Component& component) noexcept {
  const std::uint64_t epoch = last_epoch();
  for (Stage* stage : component.stages) {
    if (stage->at_end != nullptr) {
      Outputs& outputs = worker.outputs[stage->index];
      const weir_status status =
          call(worker, *stage, stage->at_end, {nullptr, 0, {epoch}}, outputs);
      if (status != WEIR_STATUS_OK) fail_item(worker, *stage, nullptr, status);
      refuse_late_items(worker, *stage);
      if (settle(worker, *stage, {nullptr, 0, {epoch}}, outputs)) {
        stage->epochs_used.store(epoch + 1, std::memory_order_release);
      }
    }
    if (stage->executor != nullptr) end_executor(worker, *stage);
    stage->at_its_end.store(true, std::memory_order_release);
  }
  component.over = true;
}

/// The epoch of items that stages put at their end: the last that had items, or one that has not
/// ended.
std::uint64_t Flow::last_epoch() const noexcept {
  const sys::Lock lock(feeds_mutex_);
  std::uint64_t used = epochs_over_ + 1;
  const auto heed = [&](const auto& each) {
    used = std::max(used, each->epochs_used.load(std::memory_order_acquire));
  };
  for (const auto& stage : stages_) heed(stage);
  for (const auto& feed : feeds_) heed(feed);
  return used - 1;
}

void Flow::end_executor(FlowWorker& worker, Stage& stage) noexcept {
  try {
    stage.executor->end();
  } catch (...) {
    const Outcome missing = current_exception_outcome(WEIR_STATUS_INTERNAL);
    worker.call.fail(missing.message.c_str());
    fail_item(worker, stage, nullptr, missing.status);
  }
}

/// Fails items that a stage puts at its end for a stage that ends with it.
void Flow::refuse_late_items(FlowWorker& worker, const Stage& stage) noexcept {
  for (const Tunnel* tunnel : stage.outputs) {
    if (tunnel->stage->component != stage.component) continue;
    if (!worker.buffers[tunnel->index]->forget_uncounted()) continue;
    worker.call.fail("put items at its end for a stage that is at its end, too");
    fail_item(worker, stage, nullptr, WEIR_STATUS_INVALID_ARGUMENT);
  }
}

void Flow::finish() noexcept {
  std::uint32_t open = kOpen;
  ended_ns_.store(now_ns(), std::memory_order_relaxed);
  if (!state_.compare_exchange_strong(open, kEnded, std::memory_order_seq_cst)) return;
  wake_everybody();
}

bool Flow::find_epochs() noexcept {
  bool found = false;
  for (std::uint64_t next = epochs_done_.load(std::memory_order_relaxed);
       !ended() && end_epoch(next); ++next) {
    if (options_.on_epoch != nullptr) {
      guarded([&] { options_.on_epoch(next, options_.payload); });
    }
    epochs_done_.store(next + 1, std::memory_order_seq_cst);
    wake_workers();
    for (const auto& tunnel : tunnels_) tunnel->room.ring();
    found = true;
  }
  return found;
}

bool Flow::end_epoch(std::uint64_t epoch) noexcept {
  const sys::Lock lock(feeds_mutex_);
  if (epoch >= closed_epochs() || !epoch_balanced(epoch)) return false;
  epochs_over_ = epoch + 1;
  return true;
}

bool Flow::epoch_balanced(std::uint64_t epoch) const noexcept {
  const std::size_t slot = slot_of(epoch);
  retained_items_->synchronize();
  return balanced([&](const auto& visit) WEIR_REQUIRES(feeds_mutex_) {
    for (const auto& worker : workers_) visit(worker->epochs[slot]);
    visit(retained_items_->epoch(slot));
    for (const auto& feed : feeds_) visit(feed->epochs[slot]);
  });
}

std::uint64_t Flow::closed_epochs() const noexcept {
  std::uint64_t closed = UINT64_MAX, used = 0;
  const auto heed = [&](bool over, const auto& epoch, const auto& epochs_used) {
    if (!over) closed = std::min(closed, epoch.load(std::memory_order_acquire));
    used = std::max(used, epochs_used.load(std::memory_order_acquire));
  };
  for (const auto& stage : stages_) {
    const bool over = stage->input != nullptr || stage->permit.over();
    heed(over, stage->epoch, stage->epochs_used);
  }
  for (const auto& feed : feeds_) {
    heed(feed->closed.load(std::memory_order_acquire), feed->epoch, feed->epochs_used);
  }
  if (closed == UINT64_MAX && used > 0 && ends_with_items()) --used;
  return std::min(closed, used);
}

/// Whether a stage that has not ended may put items at its end.
bool Flow::ends_with_items() const noexcept {
  return std::any_of(components_.begin(), components_.end(), [](const Component& component) {
    return !component.over &&
           std::any_of(component.stages.begin(), component.stages.end(), [](const Stage* stage) {
             return stage->at_end != nullptr && !stage->outputs.empty();
           });
  });
}

}  // namespace weir::rt
