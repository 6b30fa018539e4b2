// What an OpenCL place does after a command has failed, for the sake of PoCL.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/opencl/opencl_jobs.hpp"

namespace weir::rt {

/// PoCL never completes a command that waits for an event that had failed before, and may or may
/// not fail one that was enqueued earlier. So such a command is orphaned: it takes the failed
/// event in place of its own, and the place enqueues it again once the failed job is returned, if
/// its own job is not poisoned. By the thread of the place.
///
/// Example: kernel 1 fails; native kernels 2, which waits for 1, and 3, which does not, share a
/// command that waits for the event of 1.
///
///     find_orphaned()  before 1 is returned: the command of 2 and 3 takes the event of 1
///     reset()           the command is enqueued again and waits for nothing: 2 ends poisoned,
///                       without a call, and 3 runs
class PoclRepairs {
 public:
  explicit PoclRepairs(OpenClJobs& jobs) noexcept : jobs_(jobs) {}

  /// Notes that the command of a job has failed.
  void note_failure(OpenClJob& command) noexcept { command.command_failed = broken_ = true; }
  /// Notes that the driver may have a command that never ends.
  void note_hang() noexcept { may_hang_ = true; }
  bool may_hang() const noexcept { return may_hang_; }
  /// Whether a command has failed: there may be orphaned commands.
  bool broken() const noexcept { return broken_; }
  void set_broken(bool broken) noexcept { broken_ = broken; }

  /// Orphans a command that would wait for a failed event, before it is enqueued.
  void orphan(OpenClJob& command, cl_event failed) noexcept {
    OpenClLibrary::get().clRetainEvent(failed);
    command.event = failed;
    command.orphaned = true;
    note_failure(command);
  }

  /// Orphans the enqueued commands that wait for a failed job, before that is returned to the
  /// feed: it may have failed after the place looked for failed events.
  void find_orphaned() noexcept {
    jobs_.for_each([this](const OpenClJob& job) {
      if (job.is_complete()) return;
      OpenClJob& command = jobs_.slot_of(job.last);
      for (const std::uint64_t earlier : job.waits) {
        cl_event const failed = lost_event(earlier, command);
        if (failed != nullptr) fail_after_submit(command, failed);
      }
    });
  }

  /// Prepares an orphaned command to be enqueued again.
  void reset(OpenClJob& command) noexcept {
    release_events(command);
    command.orphaned = command.command_failed = false;
  }

  /// Releases the events of a job. Those of failed commands are never released when a command may
  /// hang: PoCL would mistake a new event at such an address for the one that this waits for, and
  /// run it.
  void release_events(OpenClJob& job) const noexcept {
    const bool keeps = may_hang_ && job.command_failed;
    for (cl_event* const event : {&job.event, &job.begin}) {
      if (*event != nullptr && !keeps) OpenClLibrary::get().clReleaseEvent(*event);
      *event = nullptr;
    }
  }

 private:
  /// Returns the event of an earlier job whose command has failed or was orphaned, unless it is in
  /// the same command; else nullptr.
  cl_event lost_event(std::uint64_t earlier, const OpenClJob& command) noexcept {
    const OpenClJob* const other = jobs_.find(earlier);
    if (other == nullptr) return nullptr;
    const OpenClJob& theirs = other->is_complete() ? *other : jobs_.slot_of(other->last);
    return &theirs != &command && theirs.command_failed ? theirs.event : nullptr;
  }

  /// The driver may fail the command itself, soon or never.
  void fail_after_submit(OpenClJob& command, cl_event failed) noexcept {
    const cl_int status = opencl_status(command.event);
    if (command.orphaned || command.held || status == CL_RUNNING || status == CL_COMPLETE) return;
    command.orphaned = true;
    note_failure(command);
    if (status < CL_COMPLETE) return;
    const OpenClLibrary& cl = OpenClLibrary::get();
    cl.clRetainEvent(failed);
    cl.clReleaseEvent(std::exchange(command.event, failed));
    note_hang();
  }

  OpenClJobs& jobs_;
  bool broken_ = false;
  bool may_hang_ = false;
};

}  // namespace weir::rt
