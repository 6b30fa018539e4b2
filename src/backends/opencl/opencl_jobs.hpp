// The in-flight jobs of an OpenCL place.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "backend/job_window.hpp"
#include "backends/opencl/opencl_library.hpp"

namespace weir::rt {

/// An in-flight job, or a free slot. Several jobs may share a command, which runs them in order.
struct OpenClJob {
  Worker worker;
  Job job;
  std::vector<std::uint64_t> waits;
  Outcome outcome;
  std::uint64_t last = 0;  ///< id of the last job of its command
  std::int64_t enqueued_ns = 0;
  cl_event event = nullptr;  ///< of the command, when it is the last
  cl_event begin = nullptr;  ///< on a GPU, timed: the marker before a call, or the first part of a
                             ///< copy
  OpenClJob* followers = nullptr;  ///< driver commands to poll once it is complete
  OpenClJob* next = nullptr;       ///< next in `followers`
  bool held = false;               ///< on a GPU: not enqueued yet
  bool orphaned = false;           ///< the command never runs because a predecessor has failed
  bool command_failed = false;     ///< the command has failed or was orphaned
  sys::Atomic<bool> complete{true};

  bool is_complete() const noexcept { return complete.load(std::memory_order_acquire); }
};

/// The thread of the place uses it; other threads only run jobs and end() them.
class OpenClJobs : public JobWindow<OpenClJob, 1024> {
 public:
  /// Whether a predecessor has failed. Any thread.
  bool is_poisoned(const OpenClJob& job) const noexcept { return failed_.any_of(job.waits); }
  /// Records the failure of a job, before its successors can see its command.
  void note_failure(const OpenClJob& job) noexcept { failed_.add(job.job.id); }
  /// Marks a job as complete, once. Any thread, which must not access the job afterwards.
  void end(OpenClJob& job) noexcept {
    assert(!job.is_complete());
    if (!job.outcome.ok()) note_failure(job);
    job.complete.store(true, std::memory_order_release);
    ended_.fetch_add(1, std::memory_order_seq_cst);
  }

  /// How many jobs have ended, and how many of these were removed.
  std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_seq_cst); }
  std::uint64_t removed() const noexcept { return removed_; }
  /// Removes a complete job that was returned to the feed. Returns its followers.
  OpenClJob* remove(OpenClJob& job) noexcept {
    ++removed_;
    JobWindow::remove(job);
    return std::exchange(job.followers, nullptr);
  }
  void forget_failures() noexcept { failed_.forget_before(first()); }

  /// Returns the event of an earlier job that is not complete or whose command has failed; nullptr
  /// for other jobs.
  cl_event event_of(std::uint64_t earlier) noexcept {
    const OpenClJob* const other = find(earlier);
    if (other == nullptr) return nullptr;
    if (!other->is_complete()) return slot_of(other->last).event;
    return other->command_failed ? other->event : nullptr;
  }
  /// Adds a job to the followers of a predecessor in flight. Returns false if there is none.
  bool follow(OpenClJob& job) noexcept {
    for (const std::uint64_t earlier : job.waits) {
      OpenClJob* const other = find(earlier);
      if (other == nullptr) continue;
      job.next = std::exchange(other->followers, &job);
      return true;
    }
    return false;
  }

 private:
  FailedJobs failed_{kSize};
  std::uint64_t removed_ = 0;
  sys::Atomic<std::uint64_t> ended_{0};
};

}  // namespace weir::rt
