// The job queue: resolves the dependences of jobs for devices whose cores cannot.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "backend/job_window.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Takes jobs from a feed before their predecessors complete, and passes each to the cores, or to
/// copy(), when they are complete. Ready jobs start by priority, then in the order of the feed.
///
/// The job queue is the feed of the cores. The thread that uses the feed above it calls serve(),
/// one thread at a time.
class JobQueue : public PlaceFeed, private CopySink {
 public:
  static constexpr std::size_t kWindow = 256;  ///< maximum number of jobs in the queue

  explicit JobQueue(PlaceFeed& feed);

  /// Sets the driver that runs the calls, before the first serve().
  void set_cores(PlaceDriver& cores) noexcept { cores_ = &cores; }

  /// Waits until no thread that completed a job is still in this object or wakes the cores.
  void wait_for_callers() const noexcept;

  bool next(Worker& worker, Job& job) noexcept final;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept final;
  bool has_work() const noexcept final;

 protected:
  ~JobQueue() = default;

  /// Starts a copy.
  virtual void copy(const CopyJob& job) noexcept = 0;
  /// Notifies that a job has completed: serve() must run. Any thread. `soon`: the cores run a brief
  /// job, or are about to, and will notify again after it.
  virtual void notify(bool soon) noexcept = 0;

  /// Returns completed jobs to the feed and takes new ones. Returns whether it did anything.
  bool serve() noexcept;
  /// Whether serve() may have something to do. By the thread that calls it.
  bool needs_serving() const noexcept;

 private:
  /// A job in the queue, or an empty slot.
  struct PendingJob {
    Worker worker;
    Job job;
    Outcome outcome;
    std::vector<std::uint64_t> dependents;  ///< jobs that wait for it
    std::size_t unmet = 0;                  ///< number of incomplete jobs that it waits for
    bool poisoned = false;                  ///< one of them has failed
    bool complete = false;
  };
  using Numbers = std::vector<std::uint64_t>;
  /// Jobs that may start, at most kWindow, in the order of their start.
  class ReadyJobs {
   public:
    ReadyJobs() { heap_.reserve(kWindow); }
    bool empty() const noexcept { return heap_.empty(); }
    void add(const Job& job) noexcept;
    /// The number of the next job to start.
    std::uint64_t first() const noexcept { return heap_.front() & kNumber; }
    std::uint64_t take_first() noexcept;

   private:
    static constexpr unsigned kNumberBits = 60;
    static constexpr std::uint64_t kNumber = (std::uint64_t{1} << kNumberBits) - 1;

    /// A heap of job numbers with the inverted priority in the upper bits.
    Numbers heap_;
  };
  static constexpr std::size_t kMaxReportedAtOnce = 32;  ///< brief jobs

  bool return_ended() noexcept;
  bool take_jobs() noexcept;
  bool start_copy() noexcept;
  void admit(PendingJob& slot) noexcept WEIR_REQUIRES(mutex_);
  void make_ready(PendingJob& slot) noexcept WEIR_REQUIRES(mutex_);
  void end(PendingJob& slot, Outcome outcome) noexcept WEIR_REQUIRES(mutex_);
  bool more_soon() const noexcept WEIR_REQUIRES(mutex_);
  void record_end(PendingJob& slot, Outcome outcome, bool by_core) noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  PlaceFeed& feed_;
  PlaceDriver* cores_ = nullptr;

  /// The serving thread adds and removes jobs. mutex_ guards the dependences of those in flight.
  JobWindow<PendingJob, kWindow> jobs_;
  FailedJobs failed_{kWindow};
  sys::Mutex mutex_;
  /// Calls to run and copies to start.
  ReadyJobs calls_ WEIR_GUARDED_BY(mutex_), copies_ WEIR_GUARDED_BY(mutex_);
  Numbers ended_ WEIR_GUARDED_BY(mutex_);  ///< completed jobs that the feed has not taken back
  std::uint64_t handed_out_ WEIR_GUARDED_BY(mutex_) = 0;  ///< calls handed out to the cores
  sys::Atomic<std::size_t> to_run_{0};                    ///< jobs in calls_
  sys::Atomic<std::size_t> to_serve_{0};                  ///< jobs in copies_ and ended_

  Numbers taken_;                          ///< by the serving thread: jobs that it is returning
  sys::Atomic<std::uint32_t> callers_{0};  ///< threads that are still in record_end()
};

}  // namespace weir::rt
