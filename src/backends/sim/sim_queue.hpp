// The queue of a simulated card that orders jobs by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "backends/sim/sim_clock.hpp"
#include "base/parking.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Takes jobs before those they wait for are over, and gives each to the cores of its place, or the
/// link, when they are.
///
/// In real time a thread of its own talks to the feed, in virtual time whoever drives the clock.
class SimQueue final : public PlaceFeed, private CopySink, private SimClock::Actor {
 public:
  /// `clock` is that of virtual time, null in real time.
  SimQueue(const std::string& name, PlaceFeed& feed, Device& device,
           std::shared_ptr<SimClock> clock);
  ~SimQueue();

  /// Begins with the cores that run the calls. Throws Error.
  void start(PlaceDriver& cores);

  /// Waits until no thread that ended a job is in here, or wakes the cores, any more.
  void outlast_callers() const noexcept;

  /// The feed has something.
  void wake() noexcept { parking_.unpark_one(); }

  bool next(Worker& worker, Job& job) noexcept override;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept override;
  bool has_work() const noexcept override;

 private:
  static constexpr std::size_t kWindow = 256;

  /// A job that the card has, or room for one.
  struct Slot {
    Worker worker;
    Job job;
    Outcome outcome;
    std::vector<std::uint64_t> dependents;  ///< jobs that wait for it
    std::size_t open = 0;                   ///< jobs that it waits for
    bool doomed = false;                    ///< one of them has failed
    bool over = false;
  };
  using Numbers = std::vector<std::uint64_t>;

  Slot& slot_of(std::uint64_t number) noexcept { return slots_[number % kWindow]; }
  void act() noexcept override;
  void work() noexcept;
  bool stirring() const noexcept;
  bool serve() noexcept;
  bool give_back() noexcept;
  bool take() noexcept;
  bool start_copies() noexcept;
  void admit(Slot& slot) noexcept;
  void make_ready(Slot& slot) noexcept;
  void end(Slot& slot, Outcome outcome) noexcept;
  void note_end(Slot& slot, Outcome outcome) noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  const std::string name_;
  PlaceFeed& feed_;
  Device& device_;
  const std::shared_ptr<SimClock> clock_;
  PlaceDriver* cores_ = nullptr;

  sys::Mutex mutex_;  // of the lists and what jobs wait for
  std::vector<Slot> slots_;
  FailedJobs failed_{kWindow};
  Numbers calls_, copies_, ended_;        ///< jobs to be run, to be copied, to be given back
  sys::Atomic<std::size_t> to_run_{0};    ///< jobs in calls_
  sys::Atomic<std::size_t> to_serve_{0};  ///< jobs in the other two

  std::uint64_t first_ = 1, next_ = 1;  // the server's: the oldest job, and the next one
  Numbers taken_;                       // likewise: what it is at
  bool serving_ = false;                // likewise, in virtual time
  Parking parking_;
  sys::Atomic<bool> stopping_{false};
  sys::Atomic<std::uint32_t> callers_{0};  ///< threads that have not left note_end()
  std::optional<sys::Thread> thread_;
};

/// A place whose jobs go through such a queue.
struct SimQueuedPlace final : PlaceDriver {
  SimQueuedPlace(const std::string& name, PlaceFeed& feed, Device& device,
                 std::shared_ptr<SimClock> clock)
      : queue(name, feed, device, std::move(clock)) {}
  ~SimQueuedPlace() override { queue.outlast_callers(); }  // before the cores go
  void wake() noexcept override { queue.wake(); }

  SimQueue queue;
  std::unique_ptr<PlaceDriver> cores;
};

}  // namespace weir::rt
