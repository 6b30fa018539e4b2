// What goes wrong with a simulated card because its settings say so.
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
/// A card that is lost stays so: what is under way fails, and so does everything later.
class SimFaults {
 public:
  SimFaults(const std::string& card, const SimFaultPlan& plan);

  /// An allocation starts. Throws Error when it is to fail.
  void allocate();
  /// A transfer starts. Anything but OK: it is to fail.
  Outcome copy() noexcept;
  /// A kernel starts. Likewise.
  Outcome call() noexcept;
  /// How something that started well ends.
  Outcome end() const noexcept;
  /// How a kernel ends that was not to start.
  Outcome refusal() const noexcept;

  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

 private:
  void operate() noexcept;

  const SimFaultPlan plan_;
  const std::string lost_message_, allocation_message_, copy_message_, kernel_message_;
  sys::Atomic<std::uint64_t> operations_{0}, allocations_{0}, copies_{0}, kernels_{0};
  sys::Atomic<bool> lost_{false};
};

/// A feed whose kernels fail as the faults say.
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
