// The driver commands of an OpenCL place that are in flight.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/opencl/opencl_jobs.hpp"
#include "base/parking.hpp"

namespace weir::rt {

/// Finds the complete ones of the driver commands in flight. Such a command, unlike a native
/// kernel, reports no completion: the thread of the place polls it once all its predecessors have
/// been returned to the feed, and requests a callback only before it parks (ADR 45).
class OpenClCommands {
 public:
  /// One job in kStride is sampled.
  static constexpr std::uint64_t kStride = 32;

  /// `parking` is that of the place's thread. `visits`: the status of a command does not make its
  /// writes visible, so poll() also waits for it.
  OpenClCommands(OpenClJobs& jobs, Parking& parking, bool visits)
      : jobs_(jobs), parking_(parking), visits_(visits) {
    polled_.reserve(OpenClJobs::kSize);
  }

  /// Counts a command that was enqueued.
  void add() noexcept { ++in_flight_; }
  std::size_t in_flight() const noexcept { return in_flight_; }
  /// Polls a command from now on. All predecessors of its job have been returned.
  void watch(OpenClJob& job) noexcept { polled_.push_back({job.job.id, &job}); }
  /// The number of commands that are polled.
  std::size_t watched() const noexcept { return polled_.size(); }
  /// Stops polling a command and no longer counts it. Returns whether it was polled.
  bool remove(const OpenClJob& job) noexcept {
    return erase_if([&](const Polled& polled) { return polled.job == &job; });
  }

  /// Estimates the progress of the device. Drivers lock an event that is queried, which delays a
  /// running command, so this runs once for a round and not for each job.
  void sample_progress() noexcept {
    reached_ = std::max(reached_, jobs_.first() - 1);
    for (std::uint64_t id = reached_ + kStride; id < jobs_.next(); id += kStride) {
      const OpenClJob* const job = jobs_.find(id);
      const bool complete = job == nullptr || job->is_complete() ||
                            (job->event != nullptr && opencl_status(job->event) <= CL_COMPLETE);
      if (!complete) return;
      reached_ = id;
    }
  }
  /// Jobs up to this one are probably complete.
  std::uint64_t reached() const noexcept { return reached_; }
  /// Calls complete(job, status) for each finished command up to a job, and drops it. Keeps
  /// orphaned commands of jobs that are not poisoned, which will be enqueued again. Returns
  /// whether there were any.
  template <class Complete>
  bool poll(std::uint64_t last, Complete complete) noexcept {
    return erase_if([&](const Polled& polled) {
      if (polled.id > last) return false;
      OpenClJob& job = *polled.job;
      const cl_int status = opencl_status(job.event);
      if (status > CL_COMPLETE || (job.orphaned && !jobs_.is_poisoned(job))) return false;
      if (visits_) OpenClLibrary::get().clWaitForEvents(1, &job.event);
      complete(job, status);
      return true;
    });
  }

  /// Registers a completion callback, which unparks the thread, for each polled command.
  void request_callbacks() noexcept {
    const OpenClLibrary& cl = OpenClLibrary::get();
    for (Polled& polled : polled_) {
      if (std::exchange(polled.has_callback, true)) continue;
      pending_.fetch_add(1, std::memory_order_relaxed);
      cl_event const event = polled.job->event;
      if (cl.clSetEventCallback(event, CL_COMPLETE, on_complete, this) == CL_SUCCESS) continue;
      cl.clWaitForEvents(1, &event);  // no callback: wait here
      on_complete(event, CL_COMPLETE, this);
    }
  }
  /// Whether a callback came since the last call of observe().
  bool called_back() const noexcept { return called_back_.load(std::memory_order_seq_cst); }
  /// Returns called_back(), and ignores callbacks until now from then on.
  bool observe() noexcept {
    return called_back() && called_back_.exchange(false, std::memory_order_seq_cst);
  }
  /// Waits until all requested callbacks have returned.
  void wait_for_callbacks() const noexcept {
    while (pending_.load(std::memory_order_acquire) > 0) sys::yield();
  }

 private:
  /// It has a copy of the job id, because a thousand jobs do not stay in a cache.
  struct Polled {
    std::uint64_t id = 0;
    OpenClJob* job = nullptr;
    bool has_callback = false;
  };

  template <class Predicate>
  bool erase_if(Predicate predicate) noexcept {
    const std::size_t found = std::erase_if(polled_, predicate);
    in_flight_ -= found;
    return found > 0;
  }
  /// Wakes the thread, which polls. Makes no driver call: rusticl has locked the event. Ignores the
  /// status: PoCL reports CL_COMPLETE for a command that failed before the callback was registered.
  static void CL_CALLBACK on_complete(cl_event, cl_int, void* commands) {
    auto& mine = *static_cast<OpenClCommands*>(commands);
    mine.called_back_.store(true, std::memory_order_seq_cst);
    mine.parking_.unpark_one();
    mine.pending_.fetch_sub(1, std::memory_order_release);  // now the place may be destroyed
  }

  OpenClJobs& jobs_;
  Parking& parking_;
  const bool visits_;
  std::vector<Polled> polled_;
  std::size_t in_flight_ = 0;  ///< these, and those whose predecessors are in flight
  std::uint64_t reached_ = 0;
  sys::Atomic<bool> called_back_{false};
  sys::Atomic<std::uint32_t> pending_{0};  ///< callbacks that were requested and have not returned
};

}  // namespace weir::rt
