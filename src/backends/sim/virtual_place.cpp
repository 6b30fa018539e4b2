#include "backends/sim/virtual_place.hpp"

#include <algorithm>
#include <cmath>

#include "backend/invoke.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

constexpr double kLongestSeconds = 1e8;  ///< of a kernel without contention

/// Also for NaN.
std::int64_t bounded_ns(double seconds) noexcept {
  if (!(seconds < kLongestSeconds)) seconds = kLongestSeconds;
  return std::llround(std::max(seconds, 0.0) * 1e9);
}

/// Whether the place shares some of its cores.
bool shares_core(const SimModel& model, std::span<const unsigned> threads) {
  std::vector<unsigned> count(model.cores, 0);
  for (const unsigned thread : threads) ++count[thread / model.threads];
  return std::any_of(count.begin(), count.end(),
                     [&](unsigned mine) { return mine > 0 && mine < model.threads; });
}

}  // namespace

VirtualPlace::VirtualPlace(const SimModel& model, std::span<const unsigned> cores,
                           std::shared_ptr<SimClock> clock, VirtualMemory* memory, PlaceFeed& feed)
    : model_(model),
      contention_(shares_core(model, cores) ? model.contention : 1),
      clock_(std::move(clock)),
      memory_(memory),
      feed_(feed) {
  for (unsigned i = 0; i < cores.size(); ++i) {
    cores_.push_back(std::make_unique<Core>(*this));
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
  core.outcome = model_.skip_kernels ? Outcome{} : invoke(job);
  const std::int64_t measured = sys::now_ns() - before;
  job.started_ns = clock_->now_ns();
  core.work = model_work(job, measured, core.outcome);
  core.pending = 1;
  if (core.work.bytes <= 0) {
    plan_step(core, core.work.launch_ns + compute_ns(core.work));
  } else if (core.work.launch_ns > 0) {
    plan_step(core, core.work.launch_ns);
  } else {
    step(core);
  }
}

void VirtualPlace::plan_step(Core& core, std::int64_t ns) noexcept {
  const std::int64_t now = clock_->now_ns();
  const auto taken = std::max<std::int64_t>(1, model_.slowed_ns(now, ns));
  try {
    clock_->schedule(now + taken, [this, &core] { step(core); });
  } catch (...) {
    core.outcome = failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to plan a kernel");
    step(core);
  }
}

/// A launched kernel computes and moves its bytes at the same time; then it ends.
void VirtualPlace::step(Core& core) noexcept {
  if (--core.pending > 0) return;
  if (core.work.bytes <= 0) {
    end(core);
    return;
  }
  core.pending = 2;
  memory_->move(core, std::exchange(core.work.bytes, 0), threads_of(core.job));
  plan_step(core, compute_ns(core.work));
}

void VirtualPlace::end(Core& core) noexcept {
  core.busy = false;
  --busy_;
  if (core.job.parallel) gang_ = false;
  core.job.ended_ns = clock_->now_ns();
  if (model_.notice_ns == 0 || model_.resolves_dependences) {
    feed_.finish(core.worker, core.job, std::move(core.outcome));
  } else {
    notify(core);
  }
}

/// The host learns of the end later; the core is free at once.
void VirtualPlace::notify(Core& core) noexcept {
  try {
    const auto ended = std::make_shared<std::pair<Job, Outcome>>(core.job, std::move(core.outcome));
    clock_->schedule(clock_->now_ns() + model_.notice_ns, [this, ended, index = core.worker.index] {
      notifier_.index = index;
      feed_.finish(notifier_, ended->first, std::move(ended->second));
    });
  } catch (...) {
    feed_.finish(core.worker, core.job,
                 failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to plan a kernel"));
  }
}

/// A cost function that throws fails the action with the returned outcome.
KernelWork VirtualPlace::model_work(const Job& job, std::int64_t measured,
                                    Outcome& outcome) const noexcept {
  try {
    KernelWork work = work_of(model_, job, threads_of(job), static_cast<double>(measured) * 1e-9);
    const double most = kLongestSeconds * model_.memory_bytes_per_s * model_.speed;
    if (model_.memory_bytes_per_s > 0) work.bytes = std::min(work.bytes, most);
    if (!(work.bytes > 0)) work.bytes = 0;  // also for NaN
    return work;
  } catch (...) {
    if (outcome.ok()) outcome = current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
    return {};
  }
}

std::int64_t VirtualPlace::compute_ns(const KernelWork& work) const noexcept {
  return bounded_ns(work.compute_s * contention_ / model_.speed);
}

double VirtualPlace::threads_of(const Job& job) const noexcept {
  return job.parallel ? static_cast<double>(cores_.size()) : 1;
}

}  // namespace weir::rt
