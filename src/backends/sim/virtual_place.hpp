// A place of a simulated card in virtual time: cores without threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/team.hpp"
#include "backends/sim/sim_clock.hpp"
#include "backends/sim/sim_model.hpp"

namespace weir::rt {

/// Runs a kernel the moment it starts, on the thread that drives the clock, and lets it end after
/// the time its cost function, or a measurement, gives. A parallel kernel waits until it has all
/// cores; until then no other kernel starts.
class VirtualPlace final : public PlaceDriver, private SimClock::Actor {
 public:
  /// `cores` are hardware threads of the card. A place that has some of a core but not all shares
  /// it with others.
  VirtualPlace(const SimModel& model, std::span<const unsigned> cores,
               std::shared_ptr<SimClock> clock, PlaceFeed& feed);
  ~VirtualPlace() override;

  void wake() noexcept override {}

 private:
  struct Core {
    Worker worker;
    Job job;
    bool busy = false;
  };

  void act() noexcept override;
  void start(Core& core) noexcept;
  void end(Core& core, Outcome outcome) noexcept;
  std::int64_t duration_ns(const Job& job, std::int64_t measured, Outcome& outcome) const noexcept;
  std::int64_t modelled_ns(const Job& job, std::int64_t measured) const;

  const SimModel model_;
  const double contention_;  ///< of this place
  const std::shared_ptr<SimClock> clock_;
  PlaceFeed& feed_;
  SingleTeam team_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::size_t busy_ = 0;
  Core* waiting_ = nullptr;  ///< has a parallel job and waits for the others
  bool gang_ = false;        ///< a parallel job runs
};

}  // namespace weir::rt
