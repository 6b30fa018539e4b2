#include "stream/place.hpp"

#include <algorithm>
#include <utility>

#include "backend/invoke.hpp"
#include "stream/context.hpp"
#include "stream/executor.hpp"

namespace weir::rt {

namespace {

constexpr unsigned kMostQuantum = 64;
constexpr std::int64_t kLongQuantumNs = 50'000;
constexpr unsigned kSampled = 16;  ///< one brief call in kSampled is timed

/// Sets the number of groups of a call with source code.
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
    : PlaceBase(domain, std::move(name), std::move(cores)),
      paced_(!single_worker_ && domain.info().runs_host_code),
      running_(domain.context().watched()
                   ? std::make_unique<RunningActions>(device_ordered_ ? kJobsListed : cores_.size())
                   : nullptr),
      feed_(*this),
      owned_driver_(domain.device().open_place({.name = name_, .cores = cores_}, feed_)) {
  driver_ = owned_driver_.get();
}

Place::~Place() {
  streams_.wait_until_left();
  domain_.return_cores(cores_);
}

bool Place::Feed::calls_back() const noexcept {
  return place_.domain_.context().listeners().load() > 0;
}

bool Place::next(Worker& worker, Job& job) noexcept {
  if (device_ordered_) return next_device_ordered(worker, job);
  return single_worker_ ? next_single_worker(worker, job) : next_shared(worker, job);
}

bool Place::next_single_worker(Worker& worker, Job& job) noexcept {
  for (;;) {
    auto* stream = static_cast<Executor*>(worker.current);
    if (stream != nullptr && budget_ == 0) {
      // Long actions get a smaller quantum.
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
      stream = static_cast<Executor*>(streams_.pop());
      if (stream == nullptr) return false;
      worker.current = stream;
      stream->poll();
    }
    if (Action* const action = stream->advance()) {
      ++worker.streak;
      if (may_call_inline(worker, *action)) {
        --budget_;
        call_inline(worker, *stream, *action);
        continue;
      }
      if (!prepare(worker, job, *stream, *action)) continue;
      --budget_;
      return true;
    }
    if (!has_work() && stream->spin_for_messages()) continue;
    if (stream->release()) worker.current = nullptr;
  }
}

bool Place::next_shared(Worker& worker, Job& job) noexcept {
  for (;;) {
    auto* stream = static_cast<Executor*>(std::exchange(worker.current, nullptr));
    const bool kept = stream != nullptr;
    if (kept && worker.streak % kMostQuantum == 0 && has_work()) {
      push(*stream);
      continue;
    }
    if (!kept) {
      stream = static_cast<Executor*>(streams_.pop());
      if (stream == nullptr) return false;
      stream->poll();
    }
    Action* const action = stream->advance();
    // Only actions count: polls without a result would shift which calls are timed as jobs.
    if (action != nullptr) ++worker.streak;
    if (action != nullptr && stream->runs_inline() && may_call_inline(worker, *action)) {
      worker.current = stream;
      call_inline(worker, *stream, *action);
      continue;
    }
    if (action != nullptr && !prepare(worker, job, *stream, *action)) {
      push(*stream);
      continue;
    }
    const bool brief = action != nullptr && (stream->runs_inline() || keeps_stream_for(*action));
    if (brief || (action == nullptr && kept && !has_work() && stream->spin_for_messages())) {
      worker.current = stream;
      if (brief) return true;
      continue;
    }
    stream->release_or_reschedule();
    if (action == nullptr) continue;
    job.timed = true;
    return true;
  }
}

bool Place::next_device_ordered(Worker& worker, Job& job) noexcept {
  while (Executor* const stream = current_stream()) {
    if (Action* const action = stream->advance()) {
      if (!prepare(worker, job, *stream, *action)) continue;
      ++streak_;
      return true;
    }
    if (stream->release()) current_.store(nullptr, std::memory_order_relaxed);
  }
  return false;
}

/// Returns the stream that provides the next jobs, nullptr if no stream has any.
Executor* Place::current_stream() noexcept {
  Executor* stream = current_.load(std::memory_order_relaxed);
  if (stream != nullptr) {
    if (streak_ < kMostQuantum || !streams_.any()) return stream;
    push(*stream);
  }
  stream = static_cast<Executor*>(streams_.pop());
  if (stream != nullptr) stream->poll();
  streak_ = 0;
  current_.store(stream, std::memory_order_relaxed);
  return stream;
}

/// Fills in the job for an action. Returns false if that fails: the action has then failed.
bool Place::prepare(Worker& worker, Job& job, Executor& stream, Action& action) noexcept {
  try {
    if (!fill(worker, job, stream, action)) return false;
  } catch (...) {
    refuse(stream, action,
           failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory for its arguments"));
    return false;
  }
  if (running_) [[unlikely]]
    running_->begin(running_slot(worker, job), action);
  return true;
}

void Place::refuse(Executor& stream, Action& action, Outcome why) noexcept {
  stream.set_failure(action, std::move(why));
  stream.finish(action);
}

bool Place::fill(Worker& worker, Job& job, Executor& stream, Action& action) {
  job.token = &action;
  job.context = &stream;
  job.is_copy = action.kind == ActionKind::transfer;
  job.source = job.is_copy ? nullptr : action.code->source;
  if (job.is_copy) {
    job.from = end_of_copy(stream.context(), action, 0);
    job.to = end_of_copy(stream.context(), action, 1);
  } else {
    fill_call(worker, job, action);
  }
  if (job.source != nullptr) [[unlikely]] {
    Outcome outcome = count_groups(job, *action.code->portable);
    if (!outcome.ok()) {
      refuse(stream, action, std::move(outcome));
      return false;
    }
  }
  const unsigned streak = device_ordered_ ? streak_ : worker.streak;
  const bool sampled = streak % kSampled == 0 && learns_from(job);
  job.timed = action.traits.traced || action.traits.timed || sampled;
  if (!device_ordered_) return true;
  job.brief = !job.is_copy && job.source == nullptr && keeps_stream_for(action);
  waits_.clear();
  stream.mark_submitted(action, submitted_ + 1, waits_);
  job.id = ++submitted_;
  job.priority = job_priority_of(stream, action);
  job.waits = waits_;
  if (action.traits.has_event) notify_submitted(action);
  return true;
}

/// Combines the priority of the stream with that of the action, as run queue and engine do under
/// host ordering.
std::uint8_t Place::job_priority_of(const Executor& stream, const Action& action) noexcept {
  constexpr std::size_t kTurns = Job::kPriorities / 3;
  return static_cast<std::uint8_t>(stream.priority() * kTurns +
                                   (kTurns - 1 - action.traits.priority_class));
}

/// Notifies the streams that wait for an action of its submission.
void Place::notify_submitted(const Action& action) noexcept {
  EventWait* wait = submitted_events_->note(action.id(), submitted_);
  while (wait != nullptr) {
    EventWait& waiting = *std::exchange(wait, wait->next_pending_submission);
    waiting.action->stream->mark_event_submitted(waiting, submitted_);
  }
}

/// Returns the call of the action's kernel. Requires room in worker.views.
weir_call Place::call_of(Worker& worker, const Action& action) {
  weir_view* view = worker.views.data();
  for (const Operand& operand : action.operands()) {
    const Region& region = operand.region();
    *view++ = {.address = operand.buffer->address_in(operand.memory) + region.offset,
               .extent = {region.row, region.rows, region.planes},
               .stride = {region.row_stride, region.plane_stride},
               .access = static_cast<weir_access>(operand.access)};
  }
  return {.scalars = const_cast<Action&>(action).scalars().data(),
          .scalar_count = action.scalar_count,
          .operands = worker.views.data(),
          .operand_count = action.operand_count,
          .team = nullptr,
          .name = action.traits.named ? action.label() : action.code->kernel->name().c_str(),
          .payload = action.code->payload,
          .queue = nullptr};
}

void Place::fill_call(Worker& worker, Job& job, const Action& action) {
  if (worker.views.size() < action.operand_count) worker.views.resize(action.operand_count);
  job.function = action.code->function;
  job.cost = action.code->kernel->cost();
  job.kernel = action.code->kernel->name().c_str();
  job.kernel_number = action.code->kernel->number();
  job.parallel = action.code->kernel->parallel();
  job.call = call_of(worker, action);
}

/// Whether the worker may call the kernel inline, without a job. Every kSampled-th action is a job,
/// so that the driver gets control and the call can be timed.
bool Place::may_call_inline(const Worker& worker, const Action& action) const noexcept {
  return worker.may_call && worker.streak % kSampled != 0 && action.kind == ActionKind::compute &&
         !action.traits.traced && !action.traits.timed && running_ == nullptr &&
         action.code->source == nullptr && !action.code->kernel->parallel() &&
         action.operand_count <= worker.views.size();
}

void Place::call_inline(Worker& worker, Executor& stream, Action& action) noexcept {
  Outcome failure;
  if (!call_kernel(action.code->function, call_of(worker, action), failure)) [[unlikely]] {
    stream.set_failure(action, std::move(failure));
  }
  stream.finish(action);
}

void Place::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  auto& action = *static_cast<Action*>(job.token);
  auto& stream = *static_cast<Executor*>(job.context);
  if (running_) [[unlikely]]
    running_->end(running_slot(worker, job));
  if (action.traits.traced || action.traits.timed) {
    action.times().started = job.started_ns;
    action.times().ended = job.ended_ns;
    action.record().worker = static_cast<std::uint16_t>(worker.index);
  }
  if (outcome.status == WEIR_STATUS_POISONED) [[unlikely]] {
    action.status = WEIR_STATUS_POISONED;  // the failure is the predecessor's
  } else if (!outcome.ok()) [[unlikely]] {
    stream.set_failure(action, std::move(outcome));
  }
  if (job.timed && learns_from(job)) {
    action.code->kernel->pace().note(job.ended_ns - job.started_ns);
  }
  const bool owned = device_ordered_ ? current_.load(std::memory_order_relaxed) == &stream
                                     : worker.current == &stream;
  if (owned) {
    stream.finish(action);
  } else {
    stream.post_back(action, Message::Kind::finished);
  }
}

}  // namespace weir::rt
