// The places of a task queue, each with the stream that runs its tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/queue.h>

#include "core/buffer.hpp"
#include "core/kernel.hpp"
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
  std::uint64_t load = 0;        ///< cores that they take: a parallel one takes all of the place
  std::int64_t backlog_ns = 0;   ///< their estimated time in total, times the cores that they take
  CoreTimes core_times{1};       ///< planned by estimates
  CoreTimes claimed_times{1};    ///< planned with the tasks claimed for it, if there are any
  bool saturated = false;        ///< has enough tasks, until half of them are complete
  std::int64_t claimed = 0;      ///< cores that the tasks take that this pass left for it
  std::int64_t claimed_ns = 0;   ///< their estimated time in total, times these cores

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
  /// Returns the number of cores that a task of the kernel takes.
  std::int64_t cores_of(const weir_kernel& kernel) const noexcept {
    return kernel.parallel() ? static_cast<std::int64_t>(place->width()) : 1;
  }
  /// Returns the delay from `now_ns` until its cores are free for a task of the kernel after those
  /// claimed for it: as planned, within what its incomplete tasks allow.
  std::int64_t expected_free_ns(const weir_kernel& kernel, std::int64_t now_ns) const noexcept;
  /// Claims `count` tasks of the kernel, of `run_ns` each, for it, until the next pass.
  void claim(const weir_kernel& kernel, std::int64_t count, std::int64_t run_ns,
             std::int64_t from_ns) noexcept;
  /// Plans a task of the kernel.
  void occupy(const weir_kernel& kernel, std::int64_t from_ns, std::int64_t run_ns) noexcept {
    plan(core_times, kernel, from_ns, run_ns);
  }
  /// Whether it is saturated, and stays so until its load has dropped. Saturated: enough tasks wait
  /// for its cores, and if these are brief, for long enough.
  bool has_enough() const noexcept;
  /// Returns the memory in which its tasks use a buffer.
  std::uint16_t memory_of(const Buffer& buffer) const noexcept {
    return domain().memory_of(buffer);
  }

 private:
  static void plan(CoreTimes& times, const weir_kernel& kernel, std::int64_t from_ns,
                   std::int64_t run_ns) noexcept {
    if (kernel.parallel()) return times.occupy_all(from_ns, run_ns);
    times.occupy(from_ns, run_ns);
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
