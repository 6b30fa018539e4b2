// Ordering jobs for devices whose cores cannot.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Takes the jobs of a place from a feed before those they wait for are over, and gives each to the
/// cores, or to copy(), when they are: of several the most urgent first, of these the one that the
/// feed gave first.
///
/// To the cores it is the feed. Whoever may talk to the feed above calls serve(), one thread at a
/// time.
class JobQueue : public PlaceFeed, private CopySink {
 public:
  static constexpr std::size_t kWindow = 256;  ///< jobs that it holds at most

  explicit JobQueue(PlaceFeed& feed);

  /// Says what runs the calls, before the first serve().
  void use(PlaceDriver& cores) noexcept { cores_ = &cores; }

  /// Waits until no thread that ended a job is in here, or wakes the cores, any more.
  void outlast_callers() const noexcept;

  bool next(Worker& worker, Job& job) noexcept final;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept final;
  bool has_work() const noexcept final;

 protected:
  ~JobQueue() = default;

  /// Makes a copy.
  virtual void copy(const CopyJob& job) noexcept = 0;
  /// Something is over: serve() is to be called. Any thread. `soon`: the cores are at a brief job,
  /// or about to be, and will say it again when that is over.
  virtual void stir(bool soon) noexcept = 0;

  /// Brings the feed what is over, and the device what is new. Returns whether there was anything.
  bool serve() noexcept;
  /// Whether serve() may have something to do.
  bool stirring() const noexcept;

 private:
  /// A job that the device has, or room for one.
  struct Slot {
    Worker worker;
    Job job;
    Outcome outcome;
    std::vector<std::uint64_t> dependents;  ///< jobs that wait for it
    std::size_t open = 0;                   ///< jobs that it waits for
    bool doomed = false;                    ///< one of them has failed
    bool over = false;
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
  static constexpr std::size_t kToldAtOnce = 32;  ///< brief jobs

  Slot& slot_of(std::uint64_t number) noexcept { return slots_[number % kWindow]; }
  const Slot& slot_of(std::uint64_t number) const noexcept { return slots_[number % kWindow]; }
  bool give_back() noexcept;
  bool take() noexcept;
  bool start_copy() noexcept;
  void admit(Slot& slot) noexcept WEIR_REQUIRES(mutex_);
  void make_ready(Slot& slot) noexcept WEIR_REQUIRES(mutex_);
  void end(Slot& slot, Outcome outcome) noexcept WEIR_REQUIRES(mutex_);
  bool more_soon() const noexcept WEIR_REQUIRES(mutex_);
  void note_end(Slot& slot, Outcome outcome, bool by_core) noexcept;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  PlaceFeed& feed_;
  PlaceDriver* cores_ = nullptr;

  sys::Mutex mutex_;  // of the lists and what jobs wait for
  std::vector<Slot> slots_;
  FailedJobs failed_{kWindow};
  /// To be run, to be copied.
  ReadyJobs calls_ WEIR_GUARDED_BY(mutex_), copies_ WEIR_GUARDED_BY(mutex_);
  Numbers ended_ WEIR_GUARDED_BY(mutex_);                 ///< jobs to be given back
  std::uint64_t handed_out_ WEIR_GUARDED_BY(mutex_) = 0;  ///< calls that the cores got
  sys::Atomic<std::size_t> to_run_{0};                    ///< jobs in calls_
  sys::Atomic<std::size_t> to_serve_{0};                  ///< jobs in the other two

  std::uint64_t first_ = 1, next_ = 1;     // the server's: the oldest job, and the next one
  Numbers taken_;                          // likewise: what it is at
  sys::Atomic<std::uint32_t> callers_{0};  ///< threads that have not left note_end()
};

}  // namespace weir::rt
