#include "backends/sim/virtual_place.hpp"

#include <algorithm>
#include <cmath>

#include "backend/invoke.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// Whether some of the cores are not the place's alone.
bool shares_core(const SimModel& model, std::span<const unsigned> threads) {
  std::vector<unsigned> count(model.cores, 0);
  for (const unsigned thread : threads) ++count[thread / model.threads];
  return std::any_of(count.begin(), count.end(),
                     [&](unsigned mine) { return mine > 0 && mine < model.threads; });
}

}  // namespace

VirtualPlace::VirtualPlace(const SimModel& model, std::span<const unsigned> cores,
                           std::shared_ptr<SimClock> clock, PlaceFeed& feed)
    : model_(model),
      contention_(shares_core(model, cores) ? model.contention : 1),
      clock_(std::move(clock)),
      feed_(feed) {
  for (unsigned i = 0; i < cores.size(); ++i) {
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
  const double threads = job.parallel ? static_cast<double>(cores_.size()) : 1;
  if (job.cost != nullptr && model_.core_flops_per_s > 0) {
    const weir_cost cost = job.cost(&job.call);
    const double cores = threads / model_.threads;
    const double sharers = job.parallel ? 1 : static_cast<double>(busy_);
    seconds = cost.flops / (cores * model_.core_flops_per_s);
    if (model_.memory_bytes_per_s > 0) {
      seconds = std::max(seconds, cost.bytes * sharers / model_.memory_bytes_per_s);
    }
  } else if (job.parallel) {
    seconds /= threads;
  }
  seconds *= contention_ / model_.speed;
  const auto fork_ns = job.parallel ? static_cast<double>(model_.fork_ns) * threads : 0;
  seconds += (static_cast<double>(model_.launch_ns) + fork_ns) * 1e-9;
  if (!(seconds < kLongestSeconds)) seconds = kLongestSeconds;  // also what is not a number
  seconds = std::max(seconds, 0.0);
  return std::max<std::int64_t>(1, model_.slowed_ns(job.started_ns, std::llround(seconds * 1e9)));
}

}  // namespace weir::rt
