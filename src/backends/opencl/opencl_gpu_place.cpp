#include "backends/opencl/opencl_place.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "backend/invoke.hpp"

namespace weir::rt {

namespace {

/// Whether a job is a kernel of the kind "opencl", which enqueues work itself.
bool is_call(const Job& job) noexcept { return job.source == nullptr && !job.is_copy; }

/// Enqueues a marker behind all commands of a queue, or behind those of `waits`.
cl_int mark(cl_command_queue queue, std::span<const cl_event> waits, cl_event* event) noexcept {
  return OpenClLibrary::get().clEnqueueMarkerWithWaitList(
      queue, static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(), event);
}

class OpenClGpuPlace final : public OpenClPlace {
 public:
  OpenClGpuPlace(const PlaceRequest& request, const OpenClMemory& memory, PlaceFeed& feed)
      : OpenClPlace(memory.facts(), memory.facts().id, &memory, feed), memory_(memory) {
    start(request.name);
  }
  ~OpenClGpuPlace() override { stop(); }

 private:
  bool hand_out() noexcept override {
    round_ = jobs_.next();
    const bool launches = !launchable_.empty();
    for (OpenClJob* const job : launchable_) launch_held(*job);
    launchable_.clear();
    while (jobs_.next() - round_ < kRound) {
      OpenClJob* const job = take();
      if (job == nullptr) break;
      waits_.clear();
      try {
        job->waits.assign(job->job.waits.begin(), job->job.waits.end());
        add_waits(*job, job->job.id);
      } catch (...) {
        fail(*job, CL_OUT_OF_HOST_MEMORY);
        continue;
      }
      launch(*job);
    }
    return launches || jobs_.next() != round_;
  }

  /// Whether a job must be held. A predecessor of a call could fail in the queue for calls, and
  /// every later command of that queue would be lost; so in that queue calls wait only for each
  /// other.
  bool must_hold(const OpenClJob& job) noexcept {
    return std::any_of(job.waits.begin(), job.waits.end(), [&](std::uint64_t earlier) {
      const OpenClJob* const other = jobs_.find(earlier);
      if (other == nullptr || other->is_complete()) return false;
      return other->held || (is_call(job.job) && !is_call(other->job));
    });
  }

  /// Enqueues a held job, all of whose predecessors have been returned.
  void launch_held(OpenClJob& job) noexcept {
    job.held = false;
    waits_.clear();
    if (!jobs_.is_poisoned(job)) return launch(job);
    job.job.started_ns = job.job.ended_ns = sys::now_ns();
    job.outcome = {WEIR_STATUS_POISONED, {}};
    end(job);
  }

  /// Enqueues a job, or holds it.
  void launch(OpenClJob& job) noexcept {
    job.last = job.job.id;
    job.worker.index = 0;
    job.held = waits_.failed == nullptr && must_hold(job);
    if (job.held) return watch(job);
    if (waits_.failed != nullptr) {
      repairs_.orphan(job, waits_.failed);
    } else {
      job.outcome = enqueue(job);
      if (job.outcome.ok() && jobs_.is_poisoned(job)) job.outcome = {WEIR_STATUS_POISONED, {}};
    }
    finish_launch(job);
  }

  /// No event is waited for: all predecessors of a command that is polled have been returned.
  bool resubmit() noexcept override {
    bool remain = false;
    jobs_.for_each([&](OpenClJob& job) {
      if (!job.orphaned || job.is_complete()) return;
      remain = true;
      if (!can_relaunch(job)) return;
      repairs_.reset(job);
      waits_.clear();
      launch(job);
    });
    return remain;
  }

  /// Enqueues the commands of a job. If it has no event afterwards, nothing was enqueued; the
  /// outcome has the reason for a failure.
  Outcome enqueue(OpenClJob& job) noexcept {
    const cl_int code = await_memory();
    if (code != CL_SUCCESS) return failed_opencl_call(code);
    if (job.job.source != nullptr) {
      return programs_.enqueue(queues_.for_job(job.job), job.job, waits_.events, &job.event);
    }
    if (is_call(job.job)) return call(job);
    return jobs_.is_poisoned(job) ? enqueue_nothing(job) : enqueue_copy(job);
  }

  /// Enqueues a marker in place of a poisoned copy, whose target stays unchanged.
  Outcome enqueue_nothing(OpenClJob& job) noexcept {
    if (waits_.events.empty()) return {};
    const cl_int code = mark(queues_.for_job(job.job), waits_.events, &job.event);
    return code == CL_SUCCESS ? Outcome{} : failed_opencl_call(code);
  }

  /// Makes later commands wait until the device has cleared new memory.
  cl_int await_memory() noexcept {
    const std::uint64_t clears = memory_.copies().clears();
    if (clears == clears_) return CL_SUCCESS;
    cl_int code = CL_SUCCESS;
    queues_.for_each([&](cl_command_queue queue) {
      if (code == CL_SUCCESS) code = memory_.copies().order_after_clear(queue);
    });
    if (code == CL_SUCCESS) clears_ = clears;
    return code;
  }

  /// Each part waits for the one before, so the last event covers all parts.
  Outcome enqueue_copy(OpenClJob& job) noexcept {
    const CopyEnd &from = job.job.from, &to = job.job.to;
    const OpenClEnds ends = memory_.ends_of(from, to);
    const std::uint64_t parts = count_opencl_parts(from.region, ends);
    for (std::uint64_t part = 0; part < parts; ++part) {
      cl_event before = job.event, event = nullptr;
      const std::span<const cl_event> waits =
          before == nullptr ? std::span<const cl_event>(waits_.events) : std::span(&before, 1);
      const cl_int code =
          enqueue_opencl_part(queues_.for_job(job.job), from, to, ends, part, waits, &event);
      const bool lost =
          code == CL_SUCCESS && before != nullptr && opencl_status(before) < CL_COMPLETE;
      if (lost) {
        OpenClLibrary::get().clReleaseEvent(event);
        repairs_.note_hang();  // the part may never complete
      }
      if (code != CL_SUCCESS || lost) {
        if (job.begin == before) job.begin = nullptr;
        return lost ? Outcome{} : failed_opencl_call(code);
      }
      job.event = event;
      if (part == 0 && parts > 1 && job.job.timed) job.begin = event;
      if (before != nullptr && before != job.begin) OpenClLibrary::get().clReleaseEvent(before);
    }
    return {};
  }

  /// Calls a function that enqueues its commands between two markers. The queue is in order, so
  /// these follow all earlier commands.
  Outcome call(OpenClJob& job) noexcept {
    if (job.job.function == nullptr) {
      return failed_outcome(WEIR_STATUS_UNSUPPORTED, "it has no code for opencl");
    }
    cl_command_queue const calls = queues_.calls.get();
    cl_int code = job.job.timed ? mark(calls, {}, &job.begin) : CL_SUCCESS;
    if (code != CL_SUCCESS) return failed_opencl_call(code);
    job.job.call.queue = calls;
    Outcome outcome = jobs_.is_poisoned(job) ? Outcome{WEIR_STATUS_POISONED, {}} : invoke(job.job);
    code = mark(calls, {}, &job.event);
    if (code == CL_SUCCESS) return outcome;
    OpenClLibrary::get().clFinish(calls);  // its commands may be in flight
    return outcome.ok() ? failed_opencl_call(code) : std::move(outcome);
  }

  const OpenClMemory& memory_;
  std::uint64_t clears_ = 0;  ///< clears of the memory that precede later commands
};

}  // namespace

std::unique_ptr<PlaceDriver> open_gpu_opencl_place(const PlaceRequest& request,
                                                   const OpenClMemory& memory, PlaceFeed& feed) {
  return std::make_unique<OpenClGpuPlace>(request, memory, feed);
}

}  // namespace weir::rt
