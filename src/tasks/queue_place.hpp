// The places of a task queue, each with the stream that runs its tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "core/buffer.hpp"
#include "stream/domain.hpp"
#include "stream/place.hpp"
#include "stream/place_set.hpp"
#include "stream/stream.hpp"
#include "tasks/core_times.hpp"
#include "tasks/performance_model.hpp"

namespace weir::rt {

class Registry;

/// The first fields are constant after the creation of the queue. The others describe the load, and
/// belong to the owner of the queue.
struct QueuePlace {
  struct DestroyStream {
    void operator()(weir_stream* stream) const noexcept;
  };

  std::uint32_t index = 0;
  weir_place* place = nullptr;
  std::unique_ptr<weir_stream, DestroyStream> stream;
  std::string kind;  ///< places of the same kind share measured times
  double weight = 1;

  // Its incomplete tasks.
  std::uint64_t tasks = 0;
  std::uint64_t unmeasured = 0;  ///< those of them without an estimate
  std::int64_t backlog_ns = 0;   ///< their estimated time in total, on one core
  CoreTimes core_times{1};       ///< planned by estimates
  CoreTimes claimed_times{1};    ///< planned with the tasks claimed for it, if there are any
  bool saturated = false;        ///< has enough tasks, until half of them are complete
  std::int64_t claimed = 0;      ///< tasks that this pass left for it
  std::int64_t claimed_ns = 0;   ///< their estimated time in total, on one core

  weir_queue_share share{};

  /// The first task that this place could have run while it was idle, but that another place got;
  /// one with a known time if there was such a task.
  struct Bypassed {
    const weir_kernel* kernel = nullptr;  ///< null: none
    std::int64_t run_ns = -1, elsewhere_ns = -1;
    PerformanceModel::Source source = PerformanceModel::Source::nothing;
    std::uint32_t to = 0;  ///< the place that got it
  };
  Bypassed bypassed;

  Domain& domain() const noexcept { return place->domain(); }
  /// Returns the delay from `now_ns` until one of its cores is free for a task after those claimed
  /// for it: as planned, within what its incomplete tasks allow.
  std::int64_t expected_free_ns(std::int64_t now_ns) const noexcept {
    const auto cores = static_cast<std::int64_t>(place->width());
    const std::int64_t all = static_cast<std::int64_t>(tasks) + claimed;
    if (all < cores) return 0;
    const std::int64_t mean_ns = (backlog_ns + claimed_ns) / all;
    const std::int64_t most_ns = mean_ns * (all / cores);
    const CoreTimes& planned = claimed > 0 ? claimed_times : core_times;
    return std::clamp(planned.first_free_ns() - now_ns, most_ns - mean_ns, most_ns);
  }
  /// Claims `count` tasks of `run_ns` each for it, until the next pass.
  void claim(std::int64_t count, std::int64_t run_ns, std::int64_t from_ns) noexcept {
    if (claimed == 0) claimed_times = core_times;
    claimed += count;
    claimed_ns += count * run_ns;
    claimed_times.occupy(from_ns, count * run_ns);
  }
  /// Whether it is saturated, and stays so until its load has dropped. Saturated: enough tasks wait
  /// for its cores, and if these are brief, for long enough.
  bool has_enough() const noexcept;
  /// Returns the memory in which its tasks use a buffer.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return domain().memory_of(buffer);
  }
};

/// What the program asked for when it created a queue. Constant.
struct QueueProperties {
  Registry& registry;
  std::uint64_t serial;  ///< in the ids of its tasks
  std::string name, policy;
  bool keeps_models;
  std::size_t max_in_flight;
};

/// The places of a queue and their streams. Constant, except for the loads of the places.
class QueuePlaces {
 public:
  /// Creates the streams, and places if the options name none. Throws Error.
  QueuePlaces(const QueueProperties& properties, const weir_queue_options& options);

  std::vector<QueuePlace>& all() noexcept { return all_; }
  const std::vector<QueuePlace>& all() const noexcept { return all_; }
  /// Returns the stream of the only place, if that works in host memory, else null.
  weir_stream* direct_stream() const noexcept;
  std::size_t cores() const noexcept;
  /// Destroys the streams after their last action, and collects failures that they have not
  /// reported.
  void close(Unreported& unreported) noexcept;

 private:
  const PlaceSet set_;
  std::vector<QueuePlace> all_;
};

}  // namespace weir::rt
