// A place of a queue, with the stream that runs its tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <weir/queue.h>

#include "core/buffer.hpp"
#include "runtime/domain.hpp"
#include "runtime/place.hpp"
#include "runtime/stream.hpp"
#include "sched/core_times.hpp"
#include "sched/performance_model.hpp"

namespace weir::rt {

struct QueuePlace {
  std::uint32_t index = 0;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  std::string kind;  ///< of places on which tasks take as long
  double weight = 1;

  // What it has that is not over.
  std::uint64_t tasks = 0;
  std::uint64_t unmeasured = 0;  ///< of them, those of which nothing is known
  std::int64_t backlog_ns = 0;   ///< together, on one core; estimated
  CoreTimes core_times{1};       ///< planned by estimates,
  CoreTimes claimed_times{1};    ///< also of what is left to it, if that is any
  bool saturated = false;        ///< has enough to do until half of it is done
  std::int64_t claimed = 0;      ///< tasks that this pass left to it
  std::int64_t claimed_ns = 0;   ///< of them, likewise

  weir_queue_share share{};

  /// The first task that this place could have run while it was idle and that went elsewhere; one
  /// with a known time if there is such a task.
  struct Bypassed {
    const weir_kernel* kernel = nullptr;  ///< null: there was no such task
    std::int64_t run_ns = -1, elsewhere_ns = -1;
    PerformanceModel::Source source = PerformanceModel::Source::nothing;
    std::uint32_t to = 0;  ///< the place that it went to
  };
  Bypassed bypassed;

  Domain& domain() const noexcept { return place->domain(); }
  /// How long after `now_ns` one of its cores is free for a task that comes after those left to it:
  /// as planned, within what the tasks that it has allow.
  std::int64_t expected_free_ns(std::int64_t now_ns) const noexcept {
    const auto cores = static_cast<std::int64_t>(place->width());
    const std::int64_t all = static_cast<std::int64_t>(tasks) + claimed;
    if (all < cores) return 0;
    const std::int64_t mean_ns = (backlog_ns + claimed_ns) / all;
    const std::int64_t most_ns = mean_ns * (all / cores);
    const CoreTimes& planned = claimed > 0 ? claimed_times : core_times;
    return std::clamp(planned.first_free_ns() - now_ns, most_ns - mean_ns, most_ns);
  }
  /// Leaves `count` tasks to it that take so long each, until the next pass.
  void claim(std::int64_t count, std::int64_t run_ns, std::int64_t from_ns) noexcept {
    if (claimed == 0) claimed_times = core_times;
    claimed += count;
    claimed_ns += count * run_ns;
    claimed_times.occupy(from_ns, count * run_ns);
  }
  /// The memory its tasks find a buffer in.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return domain().memory_of(buffer);
  }
};

}  // namespace weir::rt
