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
  /// be divided so.
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
  /// Jobs that are handed out, or taken back, at a time.
  static constexpr std::size_t kRound = 32;
  /// The thread samples every kStride-th job to see how far the device is.
  static constexpr std::uint64_t kStride = 32;
  /// With at least this many unobserved commands in flight the thread parks for kParkNs between
  /// polls.
  static constexpr std::size_t kManyUnobserved = 64;
  static constexpr std::int64_t kParkNs = 100'000;
  /// Copies of so many bytes join others, up to so many together.
  static constexpr std::uint64_t kSmallCopy = 64 << 10, kBatchBytes = 256 << 10;

  /// A job that the driver has, or room for one.
  struct Slot {
    OpenClPlace* place = nullptr;
    Worker worker;
    Job job;
    std::vector<std::uint64_t> waits;
    Outcome outcome;
    std::uint64_t last = 0;  ///< job of its command
    std::int64_t enqueued_ns = 0;
    cl_event event = nullptr;   ///< of the command, when it is the last
    cl_event begin = nullptr;   ///< on a card, timed: the mark before a call, a copy's first part
    Slot* followers = nullptr;  ///< commands of the driver that are looked at when it is over
    Slot* next = nullptr;       ///< of those that follow the same
    bool held = false;          ///< of a card: the driver has not got it yet
    bool abandoned = false;     ///< the command never runs: one that it waits for has failed
    sys::Atomic<bool> command_failed{false};  ///< the command has failed, or was given up
    sys::Atomic<bool> complete{true};
  };
  /// A command to poll. It has a copy of the job id, because a thousand slots do not stay in a
  /// cache.
  struct Open {
    std::uint64_t number = 0;
    Slot* slot = nullptr;
    bool watched = false;  ///< the driver calls when it is over
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
  OpenClContext context_;      ///< empty: that of the card
  OpenClQueue queue_, timed_;  ///< the latter for what has to have times
  OpenClQueue calls_;          ///< of a card: where its kernels of the kind "opencl" enqueue
  const std::int64_t spin_ns_;
  /// Of the host's clock against the device's; none: the driver tells no times.
  std::optional<std::int64_t> clock_offset_ns_;
  std::optional<OpenClPrograms> programs_;

  // The thread's.
  std::vector<Slot> slots_;
  Batch batch_;                     ///< the jobs that are to be enqueued next
  std::vector<cl_event> events_;    ///< what they wait for
  cl_event failed_wait_ = nullptr;  ///< one of these that has failed
  bool launched_ = false;           ///< jobs that were held: the queues are to be flushed
  bool may_hang_ = false;           ///< the driver may have commands that never end
  std::vector<Open> open_;          ///< commands of the driver that wait for none in flight
  std::size_t unobserved_ = 0;      ///< such commands, and those that wait
  std::uint64_t seen_ = 0;          ///< commands up to this one are likely to be over
  std::uint64_t first_ = 1;         ///< the oldest job in flight
  std::uint64_t next_ = 1;          ///< the number of the next one
  std::uint64_t round_ = 1;         ///< the first job that was handed out together with the last
  std::uint64_t taken_back_ = 0;
  std::uint64_t observed_ = 0;    ///< of completed_by_driver_
  std::int64_t last_end_ns_ = 0;  ///< without a clock of the driver: of a command
  std::uint64_t clears_ = 0;      ///< of a card: so many are over before what comes next

  sys::Atomic<std::uint64_t> ended_{0};
  sys::Atomic<std::uint64_t> completed_by_driver_{
      0};                               ///< commands that the driver has said to be over
  sys::Atomic<std::uint64_t> busy_{0};  ///< units at work, a bit each, for the trace
  FailedJobs failed_{kWindow};
  Parking parking_;
  sys::Atomic<bool> stopping_{false};
  sys::Atomic<bool> broken_{false};        ///< a command failed: batches may be given up
  sys::Atomic<std::uint32_t> callers_{0};  ///< calls that the driver makes, or callbacks to come
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
