#include "runtime/place.hpp"

#include <algorithm>
#include <utility>

#include "runtime/runtime.hpp"
#include "runtime/stream.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMostQuantum = 64;
constexpr std::int64_t kLongQuantumNs = 50'000;
constexpr unsigned kSampled = 16;  ///< of so many brief calls one is timed

/// Fills in how many groups a call of a source runs.
Outcome count_groups(Job& job, const Portable& portable) noexcept {
  try {
    job.groups = portable.groups_of(job.call);
    return {};
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
  }
}

}  // namespace

Place::Place(Domain& domain, std::string name, std::vector<unsigned> cores)
    : domain_(domain),
      name_(std::move(name)),
      cores_(std::move(cores)),
      exclusive_(cores_.size() == 1 && domain.info().copies_by_worker),
      virtual_time_(domain.info().virtual_time),
      track_(domain.runtime().recorder().add_track(
          {.name = name_,
           .domain = domain.name(),
           .kind = trace::Kind::compute,
           .width = static_cast<std::uint32_t>(cores_.size())})),
      running_(domain.runtime().watched() ? std::make_unique<RunningNow>(cores_.size()) : nullptr),
      feed_(*this),
      driver_(domain.device().open_place({.name = name_, .cores = cores_}, feed_)) {}

Place::~Place() {
  streams_.wait_until_left();
  domain_.return_cores(cores_);
}

void Place::push(Stream& stream) noexcept {
  streams_.push(stream, [this] { driver_->wake(); });
}

bool Place::next(Worker& worker, Job& job) noexcept {
  return exclusive_ ? next_exclusive(worker, job) : next_shared(worker, job);
}

bool Place::next_exclusive(Worker& worker, Job& job) noexcept {
  for (;;) {
    auto* stream = static_cast<Stream*>(worker.current);
    if (stream != nullptr && budget_ == 0) {
      // Long actions make for short turns.
      const std::int64_t now = sys::now_ns();
      const bool slow = now - std::exchange(quantum_start_ns_, now) > kLongQuantumNs;
      quantum_ = slow ? std::max(1u, quantum_ / 4) : std::min(kMostQuantum, 2 * quantum_);
      budget_ = quantum_;
      if (has_work()) {
        worker.current = nullptr;
        push(*stream);
        continue;
      }
    }
    if (stream == nullptr) {
      stream = streams_.pop();
      if (stream == nullptr) return false;
      worker.current = stream;
      stream->look();
    }
    if (Action* const action = stream->advance()) {
      if (!prepare(worker, job, *stream, *action)) continue;
      --budget_;
      return true;
    }
    if (!has_work() && stream->linger()) continue;
    if (stream->release()) worker.current = nullptr;
  }
}

bool Place::next_shared(Worker& worker, Job& job) noexcept {
  for (;;) {
    auto* stream = static_cast<Stream*>(std::exchange(worker.current, nullptr));
    const bool kept = stream != nullptr;
    if (kept && ++worker.turn % kMostQuantum == 0 && has_work()) {
      push(*stream);
      continue;
    }
    if (!kept) {
      stream = streams_.pop();
      if (stream == nullptr) return false;
      stream->look();
    }
    Action* const action = stream->advance();
    if (action != nullptr && !prepare(worker, job, *stream, *action)) {
      push(*stream);
      continue;
    }
    const bool brief = action != nullptr && (stream->runs_alone() || keeps(*action));
    if (brief || (action == nullptr && kept && !has_work() && stream->linger())) {
      worker.current = stream;
      if (brief) return true;
      continue;
    }
    if (stream->has_more() || !stream->release()) push(*stream);
    if (action == nullptr) continue;
    job.timed = true;
    return true;
  }
}

bool Place::keeps(const Action& action) const noexcept {
  const Kernel& kernel = *action.code->kernel;
  return kernel.pace().brief() && !kernel.parallel() && !virtual_time_;
}

/// Fills in the job for an action. Returns false when there is no memory for it: then it has
/// failed.
bool Place::prepare(Worker& worker, Job& job, Stream& stream, Action& action) noexcept {
  try {
    worker.views.resize(action.operand_count);
  } catch (...) {
    stream.set_failure(action,
                       failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory for its arguments"));
    stream.finish(action);
    return false;
  }
  weir_view* view = worker.views.data();
  for (const Operand& operand : action.operands()) {
    const Region& region = operand.region();
    *view++ = {.address = operand.buffer->address_in(operand.memory) + region.offset,
               .extent = {region.row, region.rows, region.planes},
               .stride = {region.row_stride, region.plane_stride},
               .access = static_cast<weir_access>(operand.access)};
  }
  job.token = &action;
  job.context = &stream;
  job.function = action.code->function;
  job.cost = action.code->kernel->cost();
  job.parallel = action.code->kernel->parallel();
  job.timed = action.traced || (!exclusive_ && worker.turn % kSampled == 0);
  job.call = {.scalars = action.scalars().data(),
              .scalar_count = action.scalar_count,
              .operands = worker.views.data(),
              .operand_count = action.operand_count,
              .team = nullptr,
              .name = action.label(),
              .payload = action.code->payload,
              .queue = nullptr};
  job.source = action.code->source;
  if (job.source != nullptr) [[unlikely]] {
    Outcome outcome = count_groups(job, *action.code->portable);
    if (!outcome.ok()) {
      stream.set_failure(action, std::move(outcome));
      stream.finish(action);
      return false;
    }
  }
  if (running_) [[unlikely]]
    running_->begin(worker.index, action);
  return true;
}

void Place::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  auto& action = *static_cast<Action*>(job.token);
  auto& stream = *static_cast<Stream*>(job.context);
  if (running_) [[unlikely]]
    running_->end(worker.index);
  if (action.traced) {
    action.times.started = job.started_ns;
    action.times.ended = job.ended_ns;
    action.lane = static_cast<std::uint16_t>(worker.index);
  }
  if (!outcome.ok()) [[unlikely]]
    stream.set_failure(action, std::move(outcome));
  if (job.timed && !exclusive_) action.code->kernel->pace().note(job.ended_ns - job.started_ns);
  if (worker.current == &stream) {
    stream.finish(action);
  } else {
    stream.post_finished(action);
  }
}

}  // namespace weir::rt
