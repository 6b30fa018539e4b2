// The queue of a simulated device with device ordering.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/job_queue.hpp"
#include "backends/sim/sim_clock.hpp"
#include "base/parking.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// In real time its own thread calls the feed; in virtual time the thread that drives the clock
/// calls it.
class SimQueue final : public JobQueue, private SimClock::Actor {
 public:
  /// `clock` is that of virtual time, null in real time.
  SimQueue(const std::string& name, PlaceFeed& feed, Device& device,
           std::shared_ptr<SimClock> clock);
  ~SimQueue();

  /// Starts with the cores that run the calls. Throws Error.
  void start(PlaceDriver& cores);
  /// Notifies the queue that the feed has jobs.
  void wake() noexcept { parking_.unpark_one(); }

 private:
  void copy(const CopyJob& job) noexcept override { device_.copy(job); }
  void notify(bool) noexcept override;
  void act() noexcept override;
  void work() noexcept;

  const std::string name_;
  Device& device_;
  const std::shared_ptr<SimClock> clock_;
  bool serving_ = false;  ///< in virtual time
  Parking parking_;
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

/// A place whose jobs go through such a queue.
struct SimQueuedPlace final : PlaceDriver {
  SimQueuedPlace(const std::string& name, PlaceFeed& feed, Device& device,
                 std::shared_ptr<SimClock> clock)
      : queue(name, feed, device, std::move(clock)) {}
  ~SimQueuedPlace() override { queue.wait_for_callers(); }  // before the cores are destroyed
  void wake() noexcept override { queue.wake(); }

  SimQueue queue;
  std::unique_ptr<PlaceDriver> cores;
};

}  // namespace weir::rt
