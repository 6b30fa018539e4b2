// Ordering jobs for devices whose cores cannot.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Takes jobs from a feed before their predecessors complete, and passes each to the cores, or to
/// copy(), when they have. Ready jobs start by priority, then in the order of the feed.
///
/// To the cores it is the feed. Whoever may talk to the feed above calls serve(), one thread at a
/// time.
class JobQueue : public PlaceFeed, private CopySink {
 public:
  static constexpr std::size_t kWindow = 256;  ///< jobs that it holds at most

  explicit JobQueue(PlaceFeed& feed);

  /// Says what runs the calls, before the first serve().
  void set_cores(PlaceDriver& cores) noexcept { cores_ = &cores; }

  /// Waits until no thread that ended a job is in here, or wakes the cores, any more.
  void wait_for_callers() const noexcept;

  bool next(Worker& worker, Job& job) noexcept final;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept final;
  bool has_work() const noexcept final;

 protected:
  ~JobQueue() = default;

  /// Makes a copy.
  virtual void copy(const CopyJob& job) noexcept = 0;
  /// Notifies that a job has completed: serve() must run. Any thread. `soon`: the cores run a brief
  /// job, or are about to, and will notify again after it.
  virtual void notify(bool soon) noexcept = 0;

  /// Brings the feed what is over, and the device what is new. Returns whether there was anything.
  bool serve() noexcept;
  /// Whether serve() may have something to do.
  bool needs_serving() const noexcept;

 private:
  /// A job that the device has, or room for one.
  struct PendingJob {
    Worker worker;
    Job job;
    Outcome outcome;
    std::vector<std::uint64_t> dependents;  ///< jobs that wait for it
    std::size_t unmet = 0;                  ///< jobs that it waits for
    bool poisoned = false;                  ///< one of them has failed
    bool complete = false;
  };
  using Numbers = std::vector<std::uint64_t>;
  /// Jobs that may start, at most kWindow.
  class ReadyJobs {
   public:
    ReadyJobs() { heap_.reserve(kWindow); }
    bool empty() const noexcept { return heap_.empty(); }
    void add(const Job& job) noexcept;
    /// The number of the first to start.
    std::uint64_t first() const noexcept { return heap_.front() & kNumber; }
    std::uint64_t take_first() noexcept;

   private:
    static constexpr unsigned kNumberBits = 60;
    static constexpr std::uint64_t kNumber = (std::uint64_t{1} << kNumberBits) - 1;

    Numbers heap_;  ///< of numbers, below how little urgent the job is
  };
  static constexpr std::size_t kMaxReportedAtOnce = 32;  ///< brief jobs

  PendingJob& slot_of(std::uint64_t number) noexcept { return slots_[number % kWindow]; }
  const PendingJob& slot_of(std::uint64_t number) const noexcept {
    return slots_[number % kWindow];
  }
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

  sys::Mutex mutex_;  // of the lists and what jobs wait for
  std::vector<PendingJob> slots_;
  FailedJobs failed_{kWindow};
  /// To be run, to be copied.
  ReadyJobs calls_ WEIR_GUARDED_BY(mutex_), copies_ WEIR_GUARDED_BY(mutex_);
  Numbers ended_ WEIR_GUARDED_BY(mutex_);                 ///< jobs to be given back
  std::uint64_t handed_out_ WEIR_GUARDED_BY(mutex_) = 0;  ///< calls that the cores got
  sys::Atomic<std::size_t> to_run_{0};                    ///< jobs in calls_
  sys::Atomic<std::size_t> to_serve_{0};                  ///< jobs in the other two

  std::uint64_t first_ = 1, next_ = 1;     // the server's: the oldest job, and the next one
  Numbers taken_;                          // likewise: what it is at
  sys::Atomic<std::uint32_t> callers_{0};  ///< threads that have not left record_end()
};

}  // namespace weir::rt
