#include "backends/sim/virtual_place.hpp"

#include <algorithm>
#include <cmath>

#include "backend/invoke.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

VirtualPlace::VirtualPlace(const SimModel& model, std::size_t cores,
                           std::shared_ptr<SimClock> clock, PlaceFeed& feed)
    : model_(model), clock_(std::move(clock)), feed_(feed) {
  for (unsigned i = 0; i < cores; ++i) {
    cores_.push_back(std::make_unique<Core>());
    cores_.back()->worker.index = i;
  }
  clock_->add(*this);
}

VirtualPlace::~VirtualPlace() { clock_->remove(*this); }

void VirtualPlace::act() noexcept {
  if (waiting_ != nullptr && busy_ == 0) {
    Core& core = *std::exchange(waiting_, nullptr);
    gang_ = true;
    start(core);
  }
  for (auto& core : cores_) {
    if (gang_ || waiting_ != nullptr) return;
    if (core->busy || !feed_.next(core->worker, core->job)) continue;
    if (core->job.parallel && busy_ > 0) {
      waiting_ = core.get();
      return;
    }
    gang_ = core->job.parallel;
    start(*core);
  }
}

void VirtualPlace::start(Core& core) noexcept {
  const NoWaitScope no_wait;
  core.busy = true;
  ++busy_;
  Job& job = core.job;
  if (job.parallel) job.call.team = &team_;
  const std::int64_t before = sys::now_ns();
  Outcome outcome = model_.skip_kernels ? Outcome{} : invoke(job);
  const std::int64_t measured = sys::now_ns() - before;
  job.started_ns = clock_->now_ns();
  job.ended_ns = job.started_ns + duration_ns(job, measured, outcome);
  try {
    auto shared = std::make_shared<Outcome>(std::move(outcome));
    clock_->schedule(job.ended_ns, [this, &core, shared] { end(core, std::move(*shared)); });
  } catch (...) {
    end(core, failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to plan the end of a kernel"));
  }
}

void VirtualPlace::end(Core& core, Outcome outcome) noexcept {
  core.busy = false;
  --busy_;
  if (core.job.parallel) gang_ = false;
  feed_.finish(core.worker, core.job, std::move(outcome));
}

/// A cost function that throws fails the action, whose outcome this then is.
std::int64_t VirtualPlace::duration_ns(const Job& job, std::int64_t measured,
                                       Outcome& outcome) const noexcept {
  try {
    return modelled_ns(job, measured);
  } catch (...) {
    if (outcome.ok()) outcome = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    return 1;
  }
}

std::int64_t VirtualPlace::modelled_ns(const Job& job, std::int64_t measured) const {
  constexpr double kLongestSeconds = 1e8;
  double seconds = static_cast<double>(measured) * 1e-9;
  if (job.cost != nullptr && model_.core_flops_per_s > 0) {
    const weir_cost cost = job.cost(&job.call);
    const double cores = job.parallel ? static_cast<double>(cores_.size()) : 1;
    const double sharers = job.parallel ? 1 : static_cast<double>(busy_);
    seconds = cost.flops / (cores * model_.core_flops_per_s);
    if (model_.memory_bytes_per_s > 0) {
      seconds = std::max(seconds, cost.bytes * sharers / model_.memory_bytes_per_s);
    }
  } else if (job.parallel) {
    seconds /= static_cast<double>(cores_.size());
  }
  seconds /= model_.speed;
  if (!(seconds < kLongestSeconds)) seconds = kLongestSeconds;  // also what is not a number
  return std::max<std::int64_t>(1, model_.slowed_ns(job.started_ns, std::llround(seconds * 1e9)));
}

}  // namespace weir::rt
