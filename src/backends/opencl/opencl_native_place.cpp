#include "backends/opencl/opencl_place.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include <fmt/ranges.h>

#include "backend/copy_bytes.hpp"
#include "backend/invoke.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// Most jobs of a command.
constexpr std::size_t kBatch = 32;
/// Copies up to kSmallCopy bytes are batched, up to kBatchBytes in a command.
constexpr std::uint64_t kSmallCopy = 64 << 10, kBatchBytes = 256 << 10;

using Counts = std::vector<cl_device_partition_property>;

/// Divides a device into sub-devices of `units` units; returns the one with that index. Sub-devices
/// are never released: threads of PoCL still access the device of a completed command, and its
/// queues and contexts hold no reference to it.
cl_device_id divide(const OpenClDeviceInfo& device, const Counts& counts, std::size_t wanted,
                    const std::string& place) {
  static sys::Mutex mutex;
  static auto& kept = *new std::map<std::pair<cl_device_id, Counts>, std::vector<cl_device_id>>();
  const sys::Lock lock(mutex);
  std::vector<cl_device_id>& made = kept[{device.id, counts}];
  if (!made.empty()) return made[wanted];
  Counts properties = {CL_DEVICE_PARTITION_BY_COUNTS};
  properties.insert(properties.end(), counts.begin(), counts.end());
  properties.insert(properties.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  std::vector<cl_device_id> parts(counts.size());
  const cl_int code = OpenClLibrary::get().clCreateSubDevices(
      device.id, properties.data(), static_cast<cl_uint>(parts.size()), parts.data(), nullptr);
  if (code != CL_SUCCESS) {
    fail(WEIR_STATUS_UNSUPPORTED, "place '{}' cannot be {} of the {} units of {}: {}; use all",
         place, counts[wanted], device.units, device.description, opencl_error(code));
  }
  made = std::move(parts);
  return made[wanted];
}

/// The device of a place: a sub-device, or the whole device.
cl_device_id part_of(const OpenClDeviceInfo& device, const PlaceRequest& request) {
  std::vector<unsigned> units = request.cores;
  std::sort(units.begin(), units.end());
  const auto size = static_cast<unsigned>(units.size()), end = units.front() + size;
  if (size == device.units) return device.id;
  if (units.back() + 1 != end) {
    fail(WEIR_STATUS_UNSUPPORTED, "place '{}' needs units that follow each other, not {}",
         request.name, fmt::join(units, ", "));
  }
  Counts counts;
  for (const unsigned count : {units.front(), size, device.units - end}) {
    if (count > 0) counts.push_back(static_cast<cl_device_partition_property>(count));
  }
  return divide(device, counts, units.front() > 0 ? 1 : 0, request.name);
}

/// Returns the bytes of a copy that takes less time than starting a command on another unit, 0 for
/// other jobs.
std::uint64_t small_copy(const Job& job) noexcept {
  if (!job.is_copy) return 0;
  const std::uint64_t bytes = job.from.region.bytes();
  return bytes <= kSmallCopy ? bytes : 0;
}

class OpenClNativePlace final : public OpenClPlace {
 public:
  OpenClNativePlace(const PlaceRequest& request, const OpenClDeviceInfo& facts, PlaceFeed& feed)
      : OpenClPlace(facts, part_of(facts, request), nullptr, feed) {
    batch_.place = this;
    start(request.name);
  }
  ~OpenClNativePlace() override {
    stop();
    while (callers_.load(std::memory_order_acquire) > 0) sys::yield();
  }

 private:
  /// The jobs of a command: [first, end), in order.
  struct Batch {
    OpenClNativePlace* place = nullptr;
    std::uint64_t first = 1, end = 1;
    std::uint64_t bytes = 0;  ///< of its small copies
  };

  bool hand_out() noexcept override {
    round_ = jobs_.next();
    while (jobs_.next() - round_ < kRound) {
      OpenClJob* const job = take();
      if (job == nullptr) break;
      const bool brief = job->job.brief;
      const std::uint64_t small = small_copy(job->job);
      const bool calls = brief && batch_.bytes == 0;
      const bool joins = calls || ((brief || small > 0) && waits_alike(job->job.waits));
      const bool room = job->job.id - batch_.first < kBatch && batch_.bytes + small <= kBatchBytes;
      if (!joins || !room) submit();
      batch_.end = job->job.id + 1;
      batch_.bytes += small;
      try {
        job->waits.assign(job->job.waits.begin(), job->job.waits.end());
        add_waits(*job, batch_.first);
      } catch (...) {
        fail_batch(CL_OUT_OF_HOST_MEMORY);
      }
      if (!brief && small == 0) submit();
    }
    submit();
    return jobs_.next() != round_;
  }

  /// Whether adding a job to the batch makes neither the batch nor the job wait longer.
  bool waits_alike(std::span<const std::uint64_t> waits) noexcept {
    bool follows = false;  // a job of the batch
    for (const std::uint64_t earlier : waits) {
      if (earlier >= batch_.first) {
        follows = true;
      } else if (cl_event const event = jobs_.event_of(earlier)) {
        if (!waits_.contains(event)) return false;
      }
    }
    return follows || std::all_of(waits_.events.begin(), waits_.events.end(), [&](cl_event event) {
             return std::any_of(waits.begin(), waits.end(), [&](std::uint64_t earlier) {
               return jobs_.event_of(earlier) == event;
             });
           });
  }

  /// Enqueues the batch as one command.
  void submit() noexcept {
    if (batch_.first == batch_.end) return;
    OpenClJob& last = jobs_.slot_of(batch_.end - 1);
    if (last.job.source != nullptr) return launch(last);
    for (std::uint64_t id = batch_.first; id < batch_.end; ++id) {
      jobs_.slot_of(id).last = batch_.end - 1;
    }
    cl_int code = CL_SUCCESS;
    if (waits_.failed != nullptr) {
      repairs_.orphan(last, waits_.failed);
    } else {
      code = OpenClLibrary::get().clEnqueueNativeKernel(
          queues_.untimed.get(), run, &batch_, sizeof batch_, 0, nullptr, nullptr,
          static_cast<cl_uint>(waits_.events.size()),
          waits_.events.empty() ? nullptr : waits_.events.data(), &last.event);
    }
    if (code != CL_SUCCESS) return fail_batch(code);
    begin_batch();
  }

  /// Enqueues a compiled kernel, the only job of the batch.
  void launch(OpenClJob& job) noexcept {
    assert(batch_.end == batch_.first + 1);
    job.last = job.job.id;
    job.worker.index = 0;
    if (waits_.failed != nullptr) {
      repairs_.orphan(job, waits_.failed);
    } else {
      job.outcome = programs_.enqueue(queues_.for_job(job.job), job.job, waits_.events, &job.event);
    }
    begin_batch();
    finish_launch(job);
  }

  void begin_batch() noexcept {
    batch_.first = batch_.end;
    batch_.bytes = 0;
    waits_.clear();
  }

  void fail_batch(cl_int code) noexcept {
    for (std::uint64_t id = batch_.first; id < batch_.end; ++id) fail(jobs_.slot_of(id), code);
    begin_batch();
  }

  bool resubmit() noexcept override {
    bool remain = false;
    for (std::uint64_t id = jobs_.first(); id < jobs_.next(); ++id) {
      const OpenClJob* const job = jobs_.find(id);
      if (job == nullptr || job->is_complete()) continue;
      const bool compiled = job->job.source != nullptr;
      if (compiled && !job->orphaned) continue;
      remain = true;
      batch_ = {this, id, job->last + 1};
      id = job->last;
      if (!compiled || can_relaunch(*job)) resubmit_batch();
      batch_.end = jobs_.next();
      begin_batch();
    }
    return remain;
  }

  /// Enqueues the batch again if it failed, unless a predecessor has failed.
  void resubmit_batch() noexcept {
    OpenClJob& last = jobs_.slot_of(batch_.end - 1);
    if (opencl_status(last.event) >= CL_COMPLETE) return;
    try {
      for (std::uint64_t id = batch_.first; id < batch_.end; ++id) {
        add_waits(jobs_.slot_of(id), batch_.first);
      }
    } catch (...) {
      return fail_batch(CL_OUT_OF_HOST_MEMORY);
    }
    if (waits_.failed != nullptr) return;
    repairs_.reset(last);
    submit();
  }

  /// The native kernel; the driver has copied its argument.
  static void CL_CALLBACK run(void* argument) {
    const NoWaitScope no_wait;
    const Batch batch = *static_cast<Batch*>(argument);
    OpenClNativePlace& place = *batch.place;
    place.callers_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint64_t id = batch.first; id < batch.end; ++id) place.run(place.jobs_.slot_of(id));
    place.callers_.fetch_sub(1, std::memory_order_release);
  }

  void run(OpenClJob& job) noexcept {
    const unsigned unit = take_unit();
    job.worker.index = unit;
    job.job.started_ns = job.job.ended_ns = 0;
    if (job.job.timed) job.job.started_ns = sys::now_ns();
    job.outcome = perform(job);
    if (job.job.timed) job.job.ended_ns = sys::now_ns();
    busy_.fetch_and(~(std::uint64_t{1} << unit), std::memory_order_relaxed);
    end(job);
  }

  Outcome perform(const OpenClJob& job) const noexcept {
    const Job& work = job.job;
    if (jobs_.is_poisoned(job)) return {WEIR_STATUS_POISONED, {}};
    if (!work.is_copy) return invoke(work);
    copy_bytes(work.to.base, work.to.region, work.from.base, work.from.region);
    return {};
  }

  /// Returns the lowest idle unit.
  unsigned take_unit() noexcept {
    std::uint64_t busy = busy_.load(std::memory_order_relaxed);
    for (;;) {
      const auto unit = static_cast<unsigned>(std::countr_one(busy)) % 64;
      const std::uint64_t taken = busy | (std::uint64_t{1} << unit);
      if (busy_.compare_exchange_weak(busy, taken, std::memory_order_relaxed)) return unit;
    }
  }

  Batch batch_;  ///< the jobs to enqueue next
  // Accessed by threads of the driver.
  sys::Atomic<std::uint64_t> busy_{0};     ///< busy units, a bit each, for the trace
  sys::Atomic<std::uint32_t> callers_{0};  ///< running native kernels
};

}  // namespace

std::unique_ptr<PlaceDriver> open_native_opencl_place(const PlaceRequest& request,
                                                      const OpenClDeviceInfo& facts,
                                                      PlaceFeed& feed) {
  return std::make_unique<OpenClNativePlace>(request, facts, feed);
}

}  // namespace weir::rt
