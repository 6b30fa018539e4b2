// Detects the ends of stages, epochs and the pipeline.
#pragma once

#include <utility>

#include "pipeline/feeds.hpp"
#include "pipeline/stage_runner.hpp"

namespace weir::rt {

/// A component of stages ends when all its producers have ended, no feed of it is open, and its
/// counts are balanced(); the pipeline ends with its last component. An epoch ends when all sources
/// and feeds have left it and its counts are balanced(). A worker without work checks, so that the
/// worker with the last item ends the pipeline itself.
///
/// Example: a feed puts x for stage t, which puts y for stage u; columns are completed of created.
///
///     step                                        t        u       check by another worker
///     the feed puts x, and closes                 0 of 1   0 of 0  t: 0 < 1
///     worker 1 takes x, and t puts y              0 of 1   0 of 0  t: 0 < 1
///     worker 1 counts y as created                0 of 1   0 of 1  t: 0 < 1
///     worker 1 counts x as complete               1 of 1   0 of 1  t ends; u: 0 < 1
///     worker 2 takes y, and u puts nothing        1 of 1   0 of 1  u: 0 < 1
///     worker 2 counts y as complete, has no work  1 of 1   1 of 1  u ends, and the pipeline
///
/// If x were counted before y, t would end, and then u, whose counts are 0 of 0, while worker 1
/// still holds y. In a loop, where t is its own producer, only the counts hold the component open.
///
/// One thread checks at a time; another that arrives makes the checker check again.
class TerminationDetector {
 public:
  TerminationDetector(FlowContext& flow, const FlowGraph& graph, const FlowCounts& counts,
                      const RetainedItems& retained, Feeds& feeds) noexcept
      : flow_(flow), graph_(graph), counts_(counts), retained_(retained), feeds_(feeds) {}

  /// Sets the components, upstream first, before the start.
  void set_components(std::vector<Component> components) noexcept {
    components_ = std::move(components);
  }
  /// Ends what is complete; runs the code for the ends of stages with the caller's runner. Returns
  /// whether anything has ended; false, too, if another thread is checking.
  bool check(StageRunner& runner) noexcept;

 private:
  bool find_ends(StageRunner& runner) noexcept;
  bool is_complete(const Component& component) const noexcept;
  void end(Component& component, StageRunner& runner) noexcept;
  bool find_epochs() noexcept;
  std::uint64_t closed_epochs(const FeedList& feeds) const noexcept;

  FlowContext& flow_;
  const FlowGraph& graph_;
  const FlowCounts& counts_;
  const RetainedItems& retained_;
  Feeds& feeds_;
  std::vector<Component> components_;
  sys::Atomic<std::uint32_t> checks_{0};  ///< requested; not 0 while a thread checks
};

}  // namespace weir::rt
