// A place of a queue, with the stream that runs its tasks.
#pragma once

#include <cstdint>
#include <string>

#include <weir/queue.h>

#include "core/buffer.hpp"
#include "runtime/domain.hpp"
#include "runtime/place.hpp"
#include "runtime/stream.hpp"
#include "sched/performance_model.hpp"

namespace weir::rt {

struct Lane {
  std::uint32_t index = 0;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  std::string kind;  ///< of places on which tasks take as long
  double weight = 1;

  // What it has that is not over.
  std::uint64_t tasks = 0;
  std::uint64_t unmeasured = 0;  ///< of them, those of which nothing is known
  std::int64_t backlog_ns = 0;   ///< together, on one core; estimated
  bool full = false;             ///< has enough to do until half of it is done
  std::int64_t claimed_ns = 0;   ///< of the tasks that this pass left to it, likewise

  weir_queue_share share{};

  /// The first task that could have run here and went elsewhere while there was none here, of those
  /// whose time is known if there is one.
  struct Passed {
    const weir_kernel* kernel = nullptr;  ///< null: there was no such task
    std::int64_t run_ns = -1, elsewhere_ns = -1;
    PerformanceModel::Source source = PerformanceModel::Source::nothing;
    std::uint32_t to = 0;  ///< the lane that it went to
  };
  Passed passed;

  Domain& domain() const noexcept { return place->domain(); }
  /// How long until one of its cores is free for a task that comes after those left to it. Of those
  /// that run half is still to be done.
  std::int64_t free_ns() const noexcept {
    const auto cores = static_cast<std::int64_t>(place->width());
    const auto all = static_cast<std::int64_t>(tasks);
    if (all < cores) return claimed_ns / cores;
    return claimed_ns / cores + backlog_ns / all * (2 * all - cores) / (2 * cores);
  }
  /// The memory its tasks find a buffer in.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return domain().memory_of(buffer);
  }
};

}  // namespace weir::rt
