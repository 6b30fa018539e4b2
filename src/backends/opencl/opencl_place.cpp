#include "backends/opencl/opencl_place.hpp"

#include <algorithm>
#include <utility>

#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// The largest number of commands in flight without completion callback: with more of them the
/// state of the driver exceeds the caches.
constexpr std::size_t kMaxUnobserved = 256;
/// With at least this many commands in flight the thread parks for kParkNs between polls.
constexpr std::size_t kManyUnobserved = 64;
constexpr std::int64_t kParkNs = 100'000;

OpenClQueues make_queues(cl_context context, cl_device_id device, bool calls) {
  const auto make = [&](OpenClQueueKind kind) { return make_opencl_queue(context, device, kind); };
  return {make(OpenClQueueKind::untimed), make(OpenClQueueKind::timed),
          calls ? make(OpenClQueueKind::in_order) : OpenClQueue()};
}

}  // namespace

Outcome failed_opencl_call(cl_int code) noexcept try {
  return {opencl_failure(code), "the OpenCL driver cannot run it: " + opencl_error(code)};
} catch (...) {
  return failed_outcome(opencl_failure(code), "the OpenCL driver has failed");
}

OpenClPlace::OpenClPlace(const OpenClDeviceInfo& facts, cl_device_id device,
                         const OpenClMemory* gpu, PlaceFeed& feed)
    : context_(gpu == nullptr ? make_opencl_context(facts.platform, device) : OpenClContext()),
      queues_(
          make_queues(gpu == nullptr ? context_.get() : gpu->context(), device, gpu != nullptr)),
      programs_(facts, gpu == nullptr ? context_.get() : gpu->context(), device,
                gpu != nullptr && gpu->has_buffers_only()),
      feed_(feed),
      spin_ns_(config::spin_ns()),
      clock_offset_ns_(opencl_clock_offset(queues_.timed.get(), device)),
      commands_(jobs_, parking_, gpu != nullptr) {
  waits_.events.reserve(OpenClJobs::kSize);
  launchable_.reserve(OpenClJobs::kSize);
}

void OpenClPlace::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  thread_.reset();
  if (!repairs_.may_hang()) queues_.for_each(OpenClLibrary::get().clFinish);
  commands_.wait_for_callbacks();
}

void OpenClPlace::serve() noexcept {
  const NoWaitScope no_wait;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const bool returned = give_back();
    const bool submitted = hand_out();
    if (submitted) flush();
    if (repairs_.broken()) {
      repairs_.set_broken(false);
      if (resubmit()) {
        flush();
        repairs_.set_broken(true);
      }
    }
    if (!returned && !submitted) idle();
  }
}

void OpenClPlace::flush() const noexcept { queues_.for_each(OpenClLibrary::get().clFlush); }

// ---- To the driver -----------------------------------------------------------------------------

bool OpenClPlace::has_room() const noexcept {
  return !jobs_.full() && commands_.in_flight() < kMaxUnobserved;
}

OpenClJob* OpenClPlace::take() noexcept {
  if (!has_room()) return nullptr;
  OpenClJob& job = jobs_.free_slot();
  if (!feed_.next(job.worker, job.job)) return nullptr;
  job.orphaned = job.command_failed = false;
  job.complete.store(false, std::memory_order_relaxed);
  jobs_.add();
  return &job;
}

void OpenClPlace::add_waits(OpenClJob& job, std::uint64_t command) {
  const bool asks = job.job.source == nullptr || repairs_.broken();
  for (const std::uint64_t earlier : job.waits) {
    cl_event const event = earlier < command ? jobs_.event_of(earlier) : nullptr;
    if (event == nullptr || waits_.contains(event)) continue;
    waits_.events.push_back(event);
    if ((asks || earlier < round_) && opencl_status(event) < CL_COMPLETE) waits_.failed = event;
  }
}

void OpenClPlace::finish_launch(OpenClJob& job) noexcept {
  if (!job.outcome.ok()) jobs_.note_failure(job);
  if (job.event == nullptr) {
    job.job.started_ns = job.job.ended_ns = sys::now_ns();
    if (job.outcome.ok() && jobs_.is_poisoned(job)) job.outcome = {WEIR_STATUS_POISONED, {}};
    return end(job);
  }
  if (job.job.timed) job.enqueued_ns = sys::now_ns();
  commands_.add();
  watch(job);
}

void OpenClPlace::watch(OpenClJob& job) noexcept {
  if (jobs_.follow(job)) return;
  if (job.held) {
    launchable_.push_back(&job);
  } else {
    commands_.watch(job);
  }
}

bool OpenClPlace::can_relaunch(const OpenClJob& job) noexcept {
  return !jobs_.is_poisoned(job) && commands_.remove(job);
}

void OpenClPlace::fail(OpenClJob& job, cl_int code) noexcept {
  job.job.started_ns = job.job.ended_ns = sys::now_ns();
  job.outcome = failed_opencl_call(code);
  end(job);
}

// ---- Back to the feed --------------------------------------------------------------------------

/// Returns complete jobs to the feed. Returns whether there were any.
bool OpenClPlace::give_back() noexcept {
  const std::uint64_t before = jobs_.removed();
  commands_.sample_progress();
  if (commands_.observe()) poll(jobs_.next());
  for (bool more = true; more && jobs_.removed() - before < kRound;) {
    poll(commands_.reached());
    const std::size_t watched = commands_.watched();
    give_back_ended();
    more = commands_.watched() > watched;
  }
  return jobs_.removed() != before;
}

/// Returns the jobs that are known to be complete.
void OpenClPlace::give_back_ended() noexcept {
  const std::uint64_t ended = jobs_.ended();
  if (ended == jobs_.removed()) return;
  for (std::uint64_t id = jobs_.first(); jobs_.removed() < ended && id < jobs_.next(); ++id) {
    OpenClJob* const job = jobs_.find(id);
    if (job == nullptr || !job->is_complete()) continue;
    if (job->command_failed) repairs_.find_orphaned();
    repairs_.release_events(*job);
    feed_.finish(job->worker, job->job, std::exchange(job->outcome, {}));
    for (OpenClJob* next = jobs_.remove(*job); next != nullptr;) {
      watch(*std::exchange(next, next->next));
    }
  }
  jobs_.forget_failures();
}

/// Completes the finished driver commands up to a job. Returns whether there were any.
bool OpenClPlace::poll(std::uint64_t last) noexcept {
  return commands_.poll(last, [this](OpenClJob& job, cl_int status) { complete(job, status); });
}

/// Completes the job of a driver command with its status.
void OpenClPlace::complete(OpenClJob& job, cl_int status) noexcept {
  if (job.job.timed) set_times(job);
  if (job.outcome.ok() && jobs_.is_poisoned(job)) {
    job.outcome = {WEIR_STATUS_POISONED, {}};
  } else if (job.outcome.ok() && status != CL_COMPLETE) {
    job.outcome = failed_opencl_call(status);
  }
  if (status < CL_COMPLETE) repairs_.note_failure(job);
  end(job);
}

/// Uses the driver's clock; without one, a command begins when the one before it has ended.
void OpenClPlace::set_times(OpenClJob& job) noexcept {
  if (!clock_offset_ns_) {
    job.job.ended_ns = sys::now_ns();
    job.job.started_ns = std::max(job.enqueued_ns, last_end_ns_);
    last_end_ns_ = job.job.ended_ns;
    return;
  }
  const bool marked = job.begin != nullptr && !job.job.is_copy;
  cl_event const first = job.begin != nullptr ? job.begin : job.event;
  const std::int64_t began =
      opencl_time(first, marked ? CL_PROFILING_COMMAND_END : CL_PROFILING_COMMAND_START);
  job.job.started_ns = began + *clock_offset_ns_;
  job.job.ended_ns = opencl_time(job.event, CL_PROFILING_COMMAND_END) + *clock_offset_ns_;
}

// ---- Nothing to do -----------------------------------------------------------------------------

bool OpenClPlace::has_work() const noexcept {
  return jobs_.ended() != jobs_.removed() || commands_.called_back() ||
         (has_room() && feed_.has_work()) || stopping_.load(std::memory_order_seq_cst);
}

/// Polls for a while, then parks, until has_work(). While many small commands are in flight, or
/// commands may fail, the thread first sleeps for kParkNs to leave the core to the driver.
void OpenClPlace::idle() noexcept {
  const bool broken = repairs_.broken();
  if (commands_.in_flight() >= kManyUnobserved || broken) {
    sys::sleep_until(sys::now_ns() + kParkNs);
    commands_.sample_progress();
    // Polling everything would query a thousand independent commands, few of which can be complete.
    const std::uint64_t reached = commands_.reached();
    if (poll(reached) || poll(broken ? jobs_.next() : reached + OpenClCommands::kStride) ||
        has_work() || broken)
      return;
  }
  const std::int64_t until = sys::now_ns() + spin_ns_;
  while (sys::now_ns() < until) {
    for (int i = 0; i < 32; ++i) sys::pause();
    if (poll(jobs_.next()) || has_work()) return;
  }
  commands_.request_callbacks();
  parking_.prepare();
  if (has_work()) {
    parking_.cancel();
  } else {
    parking_.park();
  }
}

}  // namespace weir::rt
