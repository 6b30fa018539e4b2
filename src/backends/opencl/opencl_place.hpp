// Compute units of an OpenCL device that run jobs in the order of their dependences.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_commands.hpp"
#include "backends/opencl/opencl_memory.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "backends/opencl/opencl_programs.hpp"
#include "backends/opencl/pocl_repairs.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// The queues of a place, out of order where the driver supports it. A queue keeps times of all its
/// commands or of none.
struct OpenClQueues {
  OpenClQueue untimed, timed;
  OpenClQueue calls;  ///< of a GPU: in order, for kernels of the kind "opencl"

  cl_command_queue for_job(const Job& job) const noexcept {
    return (job.timed ? timed : untimed).get();
  }
  template <class Function>
  void for_each(Function function) const {
    for (const OpenClQueue* queue : {&untimed, &timed, &calls}) {
      if (queue->get() != nullptr) function(queue->get());
    }
  }
};

/// The events that the next command waits for.
struct OpenClWaits {
  std::vector<cl_event> events;
  cl_event failed = nullptr;  ///< one of them that is known to have failed

  bool contains(cl_event event) const noexcept {
    return std::find(events.begin(), events.end(), event) != events.end();
  }
  void clear() noexcept {
    events.clear();
    failed = nullptr;
  }
};

/// What the places of processors and of GPUs have in common. A thread takes jobs from the feed
/// before their predecessors complete, with a bounded window, and enqueues commands; the driver
/// resolves the dependences. The thread returns complete jobs to the feed.
///
/// Example: a copy 1 to a GPU, a timed kernel 2 that reads what it copies, and a kernel 3.
///
///     job  waits for  queue    command                   wait list
///     1               untimed  clEnqueueWriteBufferRect
///     2    1          timed    clEnqueueNDRangeKernel    event of 1
///     3               untimed  clEnqueueNDRangeKernel
///
/// The queues are out of order, so 3 may run before 1. The thread polls the events of 1 and 3; 2 is
/// a follower of 1. Once 1 is complete it is returned to the feed, and the thread polls 2. Job 4,
/// which waits for 1 and 2, now gets the event of 2 alone. If 2 fails, 4 ends poisoned.
class OpenClPlace : public PlaceDriver {
 public:
  void wake() noexcept override { parking_.unpark_one(); }

 protected:
  /// The most jobs submitted, or returned, in one round.
  static constexpr std::size_t kRound = 32;

  /// `device` is the device or a part of it; `gpu` is null for a processor. Throws Error.
  OpenClPlace(const OpenClDeviceInfo& facts, cl_device_id device, const OpenClMemory* gpu,
              PlaceFeed& feed);
  /// The derived class calls start() at the end of its constructor, and stop() first in its
  /// destructor.
  void start(const std::string& name) {
    thread_.emplace(name, [this] { serve(); });
  }
  void stop() noexcept;

  /// Submits jobs to the driver until the feed is empty or the window is full, at most kRound.
  /// Returns whether there were any. Once per round.
  virtual bool hand_out() noexcept = 0;
  /// Enqueues again the commands that were orphaned because a predecessor failed, so that those of
  /// their jobs run that do not depend on it. Returns whether commands remain that may be
  /// resubmitted. Only after a failure.
  virtual bool resubmit() noexcept = 0;

  // By the thread of the place.
  /// Takes a job from the feed. Returns null if there is none, or no room.
  OpenClJob* take() noexcept;
  /// Adds the events that a job waits for, and checks whether one has failed. `command` is the
  /// first job of its command, whose jobs run in order. A compiled kernel does not check events of
  /// its own round: it would cost a driver call for each.
  void add_waits(OpenClJob& job, std::uint64_t command);
  /// Follows a driver command that was enqueued. Without an event nothing was enqueued, and the job
  /// ends.
  void finish_launch(OpenClJob& job) noexcept;
  /// Stops polling an orphaned command if none of its predecessors has failed. Returns whether it
  /// was polled.
  bool can_relaunch(const OpenClJob& job) noexcept;
  /// Polls a command only once all its predecessors have been returned to the feed; then launches a
  /// held job.
  void watch(OpenClJob& job) noexcept;
  /// Ends a job that was not enqueued.
  void fail(OpenClJob& job, cl_int code) noexcept;
  /// Marks a job as complete. Any thread, which must not access the job afterwards.
  void end(OpenClJob& job) noexcept {
    jobs_.end(job);
    parking_.unpark_one();
  }

  OpenClJobs jobs_;
  OpenClWaits waits_;
  PoclRepairs repairs_{jobs_};
  std::vector<OpenClJob*> launchable_;  ///< held jobs without predecessors in flight
  std::uint64_t round_ = 1;             ///< first job of the current round
  const OpenClContext context_;         ///< of a processor; a GPU's place uses that of the device
  const OpenClQueues queues_;
  OpenClPrograms programs_;

 private:
  void serve() noexcept;
  bool give_back() noexcept;
  void give_back_ended() noexcept;
  bool poll(std::uint64_t last) noexcept;
  void complete(OpenClJob& job, cl_int status) noexcept;
  void set_times(OpenClJob& job) noexcept;
  bool has_room() const noexcept;
  bool has_work() const noexcept;
  void idle() noexcept;
  void flush() const noexcept;

  PlaceFeed& feed_;
  const std::int64_t spin_ns_;
  /// From the device's clock to the host's; nullopt: the driver has no times.
  const std::optional<std::int64_t> clock_offset_ns_;
  std::int64_t last_end_ns_ = 0;  ///< of the last command, if the driver has no times
  Parking parking_;
  OpenClCommands commands_;
  sys::Atomic<bool> stopping_{false};
  std::optional<sys::Thread> thread_;
};

/// "the OpenCL driver cannot run it: CL_...", shorter without memory.
Outcome failed_opencl_call(cl_int code) noexcept;

/// Opens a place of a processor. It runs host code as native kernels in an out-of-order queue;
/// copies are native kernels too. Consecutive brief jobs, and small copies with the same
/// predecessors, are batched into one command, which runs them in order. Parallel kernels get a
/// team of one. Kernels with device source are compiled and launched by the driver. Throws Error,
/// {unsupported} when the device cannot be divided in this way.
std::unique_ptr<PlaceDriver> open_native_opencl_place(const PlaceRequest& request,
                                                      const OpenClDeviceInfo& facts,
                                                      PlaceFeed& feed);
/// Opens the place of a GPU, or of a processor that is used like one. It runs no host code; each
/// job is a command of its own, copies are commands of the driver. A kernel of the kind "opencl"
/// enqueues its commands itself, in an in-order queue. The place holds such a call, and the jobs
/// that wait for it, until all its predecessors but calls are complete. Throws Error.
std::unique_ptr<PlaceDriver> open_gpu_opencl_place(const PlaceRequest& request,
                                                   const OpenClMemory& memory, PlaceFeed& feed);

}  // namespace weir::rt
