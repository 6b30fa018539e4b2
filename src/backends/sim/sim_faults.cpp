#include "backends/sim/sim_faults.hpp"

#include <utility>

#include <fmt/format.h>

namespace weir::rt {

namespace {

/// Replaces the kernel of a call that must not run.
weir_status refuse(const weir_call*) { return WEIR_STATUS_DEVICE_ERROR; }

}  // namespace

SimFaults::SimFaults(const std::string& domain, const SimFaultPlan& plan)
    : plan_(plan),
      lost_message_(fmt::format("domain '{}' is lost, at its operation {}", domain, plan.lost_at)),
      allocation_message_(fmt::format("domain '{}' has no memory left, at its allocation {}",
                                      domain, plan.fail_allocation)),
      copy_message_(fmt::format("the link of domain '{}' failed, at its transfer {}", domain,
                                plan.fail_copy)),
      kernel_message_(fmt::format("the device of domain '{}' refused a kernel, its number {}",
                                  domain, plan.fail_kernel)) {}

void SimFaults::operate() noexcept {
  if (operations_.fetch_add(1, std::memory_order_relaxed) + 1 == plan_.lost_at) {
    lost_.store(true, std::memory_order_release);
  }
}

void SimFaults::allocate() {
  operate();
  if (lost()) throw Error(WEIR_STATUS_DEVICE_ERROR, lost_message_);
  if (allocations_.fetch_add(1, std::memory_order_relaxed) + 1 == plan_.fail_allocation) {
    throw Error(WEIR_STATUS_OUT_OF_MEMORY, allocation_message_);
  }
}

Outcome SimFaults::copy() noexcept {
  operate();
  const bool fails = copies_.fetch_add(1, std::memory_order_relaxed) + 1 == plan_.fail_copy;
  if (fails && !lost()) return failed_outcome(WEIR_STATUS_DEVICE_ERROR, copy_message_.c_str());
  return end();
}

Outcome SimFaults::call() noexcept {
  operate();
  const bool fails = kernels_.fetch_add(1, std::memory_order_relaxed) + 1 == plan_.fail_kernel;
  return fails ? refusal() : end();
}

Outcome SimFaults::end() const noexcept {
  if (!lost()) [[likely]]
    return {};
  return failed_outcome(WEIR_STATUS_DEVICE_ERROR, lost_message_.c_str());
}

Outcome SimFaults::refusal() const noexcept {
  if (lost()) return end();
  return failed_outcome(WEIR_STATUS_DEVICE_ERROR, kernel_message_.c_str());
}

bool SimFaultyFeed::next(Worker& worker, Job& job) noexcept {
  if (!feed_.next(worker, job)) return false;
  if (!faults_.call().ok()) job.function = refuse;
  return true;
}

void SimFaultyFeed::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  Outcome end = job.function == refuse ? faults_.refusal() : faults_.end();
  feed_.finish(worker, job, end.ok() ? std::move(outcome) : std::move(end));
}

}  // namespace weir::rt
