// Fault injection for a simulated device, by its settings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/sim/sim_model.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Counts the operations of a simulated device as they start, and fails those that the plan names.
/// Any thread.
///
/// A lost device stays lost: operations in flight fail, and so do all later ones.
class SimFaults {
 public:
  SimFaults(const std::string& domain, const SimFaultPlan& plan);

  /// Counts an allocation. Throws Error when it must fail.
  void allocate();
  /// Counts a transfer. Returns its failure, or OK.
  Outcome copy() noexcept;
  /// Counts a kernel. Returns its failure, or OK.
  Outcome call() noexcept;
  /// The outcome of an operation that started without a fault.
  Outcome end() const noexcept;
  /// The outcome of a kernel that must not start.
  Outcome refusal() const noexcept;

  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  void operate() noexcept;

  const SimFaultPlan plan_;
  const std::string lost_message_, allocation_message_, copy_message_, kernel_message_;
  sys::Atomic<std::uint64_t> operations_{0}, allocations_{0}, copies_{0}, kernels_{0};
  sys::Atomic<bool> lost_{false};
};

/// A feed that fails kernels by the fault plan.
class SimFaultyFeed final : public PlaceFeed {
 public:
  SimFaultyFeed(PlaceFeed& feed, SimFaults& faults) noexcept : feed_(feed), faults_(faults) {}

  bool next(Worker& worker, Job& job) noexcept override;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept override;
  bool has_work() const noexcept override { return feed_.has_work(); }

 private:
  PlaceFeed& feed_;
  SimFaults& faults_;
};

/// A place with such a feed.
struct SimFaultyPlace final : PlaceDriver {
  SimFaultyPlace(PlaceFeed& given, SimFaults& faults) noexcept : feed(given, faults) {}
  void wake() noexcept override { driver->wake(); }

  SimFaultyFeed feed;
  std::unique_ptr<PlaceDriver> driver;
};

}  // namespace weir::rt
