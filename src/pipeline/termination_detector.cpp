#include "pipeline/termination_detector.hpp"

#include <algorithm>
#include <cassert>

namespace weir::rt {

bool TerminationDetector::check(StageRunner& runner) noexcept {
  if (checks_.fetch_add(1, std::memory_order_acq_rel) > 0) return false;
  bool found = false;
  for (std::uint32_t served = 1; served > 0;) {
    while (!flow_.completion.ended() && find_ends(runner)) found = true;
    served = checks_.fetch_sub(served, std::memory_order_acq_rel) - served;
  }
  return found;
}

/// Ends all complete components and epochs. Returns whether any ended.
bool TerminationDetector::find_ends(StageRunner& runner) noexcept {
  bool found = false, all = true;
  for (Component& component : components_) {
    if (!component.ended && is_complete(component)) {
      end(component, runner);
      found = true;
    }
    all = all && component.ended;
  }
  if (flow_.epochs.enabled() && find_epochs()) found = true;
  if (all && !flow_.completion.ended()) flow_.completion.finish();
  return found;
}

bool TerminationDetector::is_complete(const Component& component) const noexcept {
  for (const std::size_t producer : component.producers) {
    if (!components_[producer].ended) return false;
  }
  for (const Stage* stage : component.stages) {
    if (stage->input == nullptr) return stage->permit.drained();
    if (stage->input->open_feeds.load(std::memory_order_seq_cst) > 0) return false;
  }
  retained_.synchronize();
  const bool complete = feeds_.locked([&](const FeedList& feeds) {
    return balanced([&](const auto& visit) {
      for (const Stage* stage : component.stages) {
        counts_.each(*stage->input, feeds, [&](const TunnelCounters& each) { visit(each.count); });
      }
    });
  });
  // Whether all results are sent, checked last: until the counts balance a batch may still be
  // taken, and it is complete before it is sent.
  return complete &&
         std::all_of(component.stages.begin(), component.stages.end(), [](const Stage* stage) {
           if (stage->reorder && !stage->reorder->empty()) return false;
           return stage->order_preserving.empty() || stage->permit.free();
         });
}

void TerminationDetector::end(Component& component, StageRunner& runner) noexcept {
  assert(!component.ended);
  // The epoch of items put at the end: the last that had items, or one that has not ended.
  std::uint64_t used = feeds_.epochs_used();
  for (const auto& stage : graph_.stages()) {
    used = std::max(used, stage->epochs_used.load(std::memory_order_acquire));
  }
  for (Stage* stage : component.stages) {
    runner.run_end(*stage, used - 1);
    stage->at_its_end.store(true, std::memory_order_release);
  }
  component.ended = true;
}

bool TerminationDetector::find_epochs() noexcept {
  const weir_pipeline_options& options = flow_.options;
  bool found = false;
  for (std::uint64_t next = flow_.epochs.done(); !flow_.completion.ended(); ++next) {
    const bool ended = feeds_.end_epoch(next, [&](const FeedList& feeds) {
      if (next >= closed_epochs(feeds)) return false;
      retained_.synchronize();
      return balanced([&](const auto& visit) {
        counts_.each_of_epoch(flow_.epochs.slot_of(next), feeds, visit);
      });
    });
    if (!ended) break;
    if (options.on_epoch != nullptr) {
      flow_.completion.guarded([&] { options.on_epoch(next, options.payload); });
    }
    flow_.epochs.note_done(next);
    flow_.groups.wake_all();
    found = true;
  }
  return found;
}

/// The number of epochs that all sources and feeds have closed and that had items.
std::uint64_t TerminationDetector::closed_epochs(const FeedList& feeds) const noexcept {
  std::uint64_t open = UINT64_MAX, used = 0;
  const auto heed = [&](bool closed, const auto& epoch, const auto& epochs_used) {
    // As Feeds::next_epoch() does: a thread that has said that it sleeps checks here once more.
    if (!closed) open = std::min(open, epoch.load(std::memory_order_seq_cst));
    used = std::max(used, epochs_used.load(std::memory_order_acquire));
  };
  for (const auto& stage : graph_.stages()) {
    heed(stage->input != nullptr || stage->permit.drained(), stage->epoch, stage->epochs_used);
  }
  for (const auto& feed : feeds) {
    heed(feed->closed.load(std::memory_order_acquire), feed->epoch, feed->epochs_used);
  }
  // A stage that has not ended may put items at its end.
  const auto may_put = [](const Component& component) {
    return !component.ended &&
           std::any_of(component.stages.begin(), component.stages.end(), [](const Stage* stage) {
             return stage->at_end != nullptr && !stage->outputs.empty();
           });
  };
  if (open == UINT64_MAX && used > 0 &&
      std::any_of(components_.begin(), components_.end(), may_put)) {
    --used;
  }
  return std::min(open, used);
}

}  // namespace weir::rt
