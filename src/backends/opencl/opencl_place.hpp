// Compute units of an OpenCL device that run jobs in the order of their dependences.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/failed_jobs.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "backends/opencl/opencl_programs.hpp"
#include "base/parking.hpp"
#include "base/threads.hpp"

namespace weir::rt {

class OpenClDevice;

/// A thread enqueues jobs as native kernels in an out-of-order queue, with a bounded window; the
/// driver resolves the dependences. Copies are native kernels too. Consecutive brief jobs, and
/// small copies with the same predecessors, are batched into one command. Parallel kernels get a
/// team of one. Kernels with device source are compiled and launched by the driver.
///
/// Commands other than native kernels report no completion: the thread polls those that may be
/// complete, and requests a driver callback only before it sleeps (ADR 45).
///
/// A discrete device runs no host code. Copies are driver commands there, and a kernel of the kind
/// "opencl" enqueues its commands itself in an in-order queue. The place holds such a call, and its
/// successors, until all other predecessors are complete.
class OpenClPlace final : public PlaceDriver {
 public:
  /// `discrete_device` is null for a processor. Throws Error, {unsupported} when the device cannot
  /// be divided in this way.
  OpenClPlace(const PlaceRequest& request, const OpenClDeviceInfo& device,
              const OpenClDevice* discrete_device, PlaceFeed& feed);
  ~OpenClPlace() override;

  void wake() noexcept override { parking_.unpark_one(); }

 private:
  static constexpr std::size_t kWindow = 1024;
  static constexpr std::size_t kBatch = 32;
  /// The largest number of commands in flight without completion callback: with more of them the
  /// state of the driver exceeds the caches.
  static constexpr std::size_t kMaxUnobserved = 256;
  /// Most jobs submitted, or retired, in one round.
  static constexpr std::size_t kRound = 32;
  /// The thread samples the status of every kStride-th job.
  static constexpr std::uint64_t kStride = 32;
  /// With at least this many unobserved commands in flight the thread parks for kParkNs between
  /// polls.
  static constexpr std::size_t kManyUnobserved = 64;
  static constexpr std::int64_t kParkNs = 100'000;
  /// Copies up to kSmallCopy bytes are batched, up to kBatchBytes in a command.
  static constexpr std::uint64_t kSmallCopy = 64 << 10, kBatchBytes = 256 << 10;

  /// An in-flight job, or a free slot.
  struct Slot {
    OpenClPlace* place = nullptr;
    Worker worker;
    Job job;
    std::vector<std::uint64_t> waits;
    Outcome outcome;
    std::uint64_t last = 0;  ///< id of the last job of its command
    std::int64_t enqueued_ns = 0;
    cl_event event = nullptr;   ///< of the command, when it is the last
    cl_event begin = nullptr;   ///< on a discrete device, timed: the marker before a call, or the
                                ///< first part of a copy
    Slot* followers = nullptr;  ///< driver commands to poll once it is complete
    Slot* next = nullptr;       ///< next in `followers`
    bool held = false;          ///< on a discrete device: not enqueued yet
    bool abandoned = false;     ///< the command never runs because a predecessor has failed
    sys::Atomic<bool> command_failed{false};  ///< the command has failed or was abandoned
    sys::Atomic<bool> complete{true};
  };
  /// A command to poll. It has a copy of the job id, because a thousand slots do not stay in a
  /// cache.
  struct Open {
    std::uint64_t number = 0;
    Slot* slot = nullptr;
    bool watched = false;  ///< a callback is registered
  };
  /// The jobs of one command.
  struct Batch {
    OpenClPlace* place = nullptr;
    std::uint64_t first = 1, end = 1;
    std::uint64_t bytes = 0;  ///< of its small copies
  };

  Slot& slot_of(std::uint64_t number) noexcept { return slots_[number % kWindow]; }
  cl_command_queue queue_for(const Job& job) const noexcept {
    return (job.timed ? timed_ : queue_).get();
  }

  void serve() noexcept;
  bool take_back() noexcept;
  void retire() noexcept;
  void add_follower(Slot& slot) noexcept;
  bool must_hold(const Slot& slot) noexcept;
  void launch_held(Slot& slot) noexcept;
  void sample_progress() noexcept;
  bool poll_commands(std::uint64_t last) noexcept;
  void request_callbacks() noexcept;
  bool hand_out() noexcept;
  std::uint64_t small_copy(const Job& job) const noexcept;
  cl_event event_of(std::uint64_t earlier) noexcept;
  bool awaits(cl_event event) const noexcept;
  bool waits_alike(std::span<const std::uint64_t> waits) noexcept;
  void add_waits(const Slot& slot);
  void submit() noexcept;
  void begin_batch() noexcept;
  void abandon_command(Slot& slot) noexcept;
  cl_event lost_event(std::uint64_t earlier, const Slot& command) noexcept;
  void find_abandoned() noexcept;
  bool keeps(const Slot& slot) const noexcept;
  void fail_after_submit(Slot& command, cl_event failed) noexcept;
  bool resubmit() noexcept;
  bool is_still_watched(const Slot& slot) noexcept;
  void enqueue_resubmitted() noexcept;
  void launch(Slot& slot) noexcept;
  Outcome enqueue(Slot& slot) noexcept;
  cl_int await_memory() noexcept;
  Outcome enqueue_copy(Slot& slot) noexcept;
  Outcome enqueue_nothing(Slot& slot) noexcept;
  Outcome call(Slot& slot) noexcept;
  cl_int mark(cl_event* event) const noexcept;
  void flush() const noexcept;
  void fail_batch(cl_int code) noexcept;
  void idle() noexcept;
  bool has_work() const noexcept;
  bool has_room() const noexcept {
    return next_ - first_ < kWindow && unobserved_ < kMaxUnobserved;
  }
  static void CL_CALLBACK run(void* argument);
  static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* place);
  void note_times(Slot& slot) noexcept;
  void complete(Slot& slot, cl_int status) noexcept;
  void run(Slot& slot) noexcept;
  Outcome perform(const Slot& slot) const noexcept;
  void end(Slot& slot) noexcept;
  unsigned take_unit() noexcept;

  PlaceFeed& feed_;
  const OpenClDevice* const discrete_device_;
  OpenClContext context_;      ///< empty: the context of the discrete device is used
  OpenClQueue queue_, timed_;  ///< the latter for timed jobs
  OpenClQueue calls_;          ///< of a discrete device: the queue for kernels of the kind "opencl"
  const std::int64_t spin_ns_;
  /// From the device's clock to the host's; nullopt: the driver has no times.
  std::optional<std::int64_t> clock_offset_ns_;
  std::optional<OpenClPrograms> programs_;

  // Accessed by the place's thread only.
  std::vector<Slot> slots_;
  Batch batch_;                     ///< the jobs to enqueue next
  std::vector<cl_event> events_;    ///< events that the batch waits for
  cl_event failed_wait_ = nullptr;  ///< a failed one of these
  bool launched_ = false;           ///< held jobs: the queues must be flushed
  bool may_hang_ = false;           ///< the driver may have commands that never end
  std::vector<Open> open_;          ///< driver commands to poll: all predecessors are complete
  std::size_t unobserved_ = 0;      ///< driver commands in flight, these and those that wait
  std::uint64_t seen_ = 0;          ///< jobs up to this one are probably complete
  std::uint64_t first_ = 1;         ///< the oldest job in flight
  std::uint64_t next_ = 1;          ///< id of the next job
  std::uint64_t round_ = 1;         ///< first job of the current round
  std::uint64_t taken_back_ = 0;
  std::uint64_t observed_ = 0;    ///< last value of completed_by_driver_
  std::int64_t last_end_ns_ = 0;  ///< of the last command, if the driver has no times
  std::uint64_t clears_ = 0;      ///< of a discrete device: clears that precede later commands

  sys::Atomic<std::uint64_t> ended_{0};
  sys::Atomic<std::uint64_t> completed_by_driver_{0};  ///< callbacks of complete commands
  sys::Atomic<std::uint64_t> busy_{0};                 ///< busy units, a bit each, for the trace
  FailedJobs failed_{kWindow};
  Parking parking_;
  sys::Atomic<bool> stopping_{false};
  sys::Atomic<bool> broken_{false};        ///< a command has failed: batches may be abandoned
  sys::Atomic<std::uint32_t> callers_{0};  ///< pending and running callbacks of the driver
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
