// A place of a simulated device in virtual time: cores without threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "backend/team.hpp"
#include "backends/sim/kernel_model.hpp"
#include "backends/sim/sim_clock.hpp"
#include "backends/sim/sim_model.hpp"
#include "backends/sim/virtual_memory.hpp"

namespace weir::rt {

/// Runs a kernel when it starts, on the thread that drives the clock, and completes it after its
/// modelled time: launch, compute by its cost function or measured, and memory transfer, which
/// shares the bandwidth of the device. A parallel kernel waits for all cores; no other kernel
/// starts meanwhile.
class VirtualPlace final : public PlaceDriver, private SimClock::Actor {
 public:
  /// `cores` are hardware threads of the device. A place with some but not all threads of a core
  /// shares it with other places. `memory` is that of the device and outlives the place; null:
  /// unlimited bandwidth.
  VirtualPlace(const SimModel& model, std::span<const unsigned> cores,
               std::shared_ptr<SimClock> clock, VirtualMemory* memory, PlaceFeed& feed);
  ~VirtualPlace() override;

  void wake() noexcept override {}

 private:
  struct Core final : MemoryShares::Kernel {
    explicit Core(VirtualPlace& owner) : place(owner) {}
    void moved() noexcept override { place.step(*this); }

    VirtualPlace& place;
    Worker worker;
    Job job;
    bool busy = false;
    KernelWork work;  ///< of the job, and the outcome of its call
    Outcome outcome;
    unsigned pending = 0;  ///< events that must happen before the next step
  };

  void act() noexcept override;
  void start(Core& core) noexcept;
  void plan_step(Core& core, std::int64_t ns) noexcept;
  void step(Core& core) noexcept;
  void end(Core& core) noexcept;
  void notify(Core& core) noexcept;
  KernelWork model_work(const Job& job, std::int64_t measured, Outcome& outcome) const noexcept;
  std::int64_t compute_ns(const KernelWork& work) const noexcept;
  double threads_of(const Job& job) const noexcept;

  const SimModel model_;
  const double contention_;  ///< of this place
  const std::shared_ptr<SimClock> clock_;
  VirtualMemory* const memory_;
  PlaceFeed& feed_;
  SingleTeam team_;
  Worker notifier_;  ///< returns jobs of which the host learns later, when their core has another
  std::vector<std::unique_ptr<Core>> cores_;
  std::size_t busy_ = 0;
  Core* waiting_ = nullptr;  ///< has a parallel job and waits for the others
  bool gang_ = false;        ///< a parallel job runs
};

}  // namespace weir::rt
