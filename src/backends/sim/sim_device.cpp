#include "backends/sim/sim_device.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "backend/copy_bytes.hpp"
#include "backend/host_memory.hpp"
#include "backend/worker_team.hpp"
#include "backends/sim/sim_queue.hpp"
#include "backends/sim/virtual_place.hpp"

namespace weir::rt {

namespace {

constexpr double kLongestKernelNs = 1e17;  ///< of a kernel

SimDirection direction_of(const CopyJob& job, const Device* self) noexcept {
  return job.target.device == self ? SimDirection::in : SimDirection::out;
}

/// Describes the modelled costs of kernels.
std::string describe_costs(const SimModel& model) {
  std::string text;
  const auto add = [&](double value, const char* before, const char* after) {
    if (value > 0) text += fmt::format(", {} {:g}{}", before, value, after);
  };
  const auto add_share = [&](double value, const char* kind) {
    if (value < 1) add(value, kind, "");
  };
  const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / 1e3; };
  if (model.virtual_time || model.skip_kernels) {
    add(model.memory_bytes_per_s / 1e9, "memory of", " GB/s");
    add(model.core_memory_bytes_per_s / 1e9, "at most", " GB/s a core");
    add(model.tile_loss, "tile loss", "");
    add_share(model.syrk_share, "syrk at");
    add_share(model.trsm_share, "trsm at");
    add_share(model.potrf_share, "potrf at");
  }
  add(us(model.launch_ns), "launches of", " us");
  add(us(model.team_ns), "teams of", " us");
  add(us(model.fork_ns), "forks of", " us");
  add(us(model.enqueue_ns), "enqueues of", " us");
  add(us(model.notice_ns), "notices of", " us");
  if (model.contention > 1) add(model.contention, "shared cores slower by", " times");
  if (model.slow_by > 1) {
    add(model.slow_by, "slower by", " times");
    text += fmt::format(" from {:g} ms on", static_cast<double>(model.slow_at_ns) / 1e6);
  }
  return text;
}

std::string describe_link(const SimModel& model) {
  if (model.host) return {};
  std::string text = fmt::format(", {:g} GB/s", model.link.bytes_per_s / 1e9);
  if (model.link.out_bytes_per_s != model.link.bytes_per_s) {
    text += fmt::format(" in and {:g} out", model.link.out_bytes_per_s / 1e9);
  }
  return text + fmt::format(" {} duplex, {:g} us", model.link.full_duplex ? "full" : "half",
                            static_cast<double>(model.link.latency_ns) / 1e3);
}

/// Simulated devices that differ in this key take different times for the same kernels.
std::string describe(const SimModel& model) {
  const bool modelled = model.core_flops_per_s > 0 && (model.virtual_time || model.skip_kernels);
  const std::string rate =
      modelled ? fmt::format(" of {:g} GFLOP/s", model.core_flops_per_s / 1e9) : "";
  return fmt::format("simulated {} of {} core{}{}{} at {:g}x{}{}{}", model.host ? "host" : "device",
                     model.cores, model.cores == 1 ? "" : "s",
                     model.threads == 1 ? "" : fmt::format(" with {} threads each", model.threads),
                     rate, model.speed, describe_link(model), describe_costs(model),
                     model.virtual_time ? ", virtual time" : "");
}

}  // namespace

SimDevice::SimDevice(std::string name, const SimModel& model, std::vector<unsigned> processors,
                     bool pin, std::shared_ptr<SimClock> clock)
    : model_(model),
      processors_(std::move(processors)),
      pin_(pin),
      clock_(std::move(clock)),
      faults_(model.faults.any() ? std::make_unique<SimFaults>(name, model.faults) : nullptr) {
  info_.name = std::move(name);
  info_.backend = model_.host ? "host" : "sim";
  info_.aliases_host = model_.host;
  info_.runs_host_code = true;
  info_.enqueue_ns = model_.enqueue_ns;
  info_.description = describe(model_);
  info_.cores = model_.all_threads();
  info_.threads_per_core = model_.threads;
  info_.memory_bytes = model_.memory_bytes;
  info_.virtual_time = model_.virtual_time;
  info_.skips_kernels = model_.skip_kernels;
  info_.resolves_dependences = model_.resolves_dependences;
  if (!model_.host) {
    info_.link_gbps = model_.link.bytes_per_s / 1e9;
    info_.link_latency_us = static_cast<double>(model_.link.latency_ns) / 1e3;
    info_.link_duplex = model_.link.full_duplex ? "full" : "half";
  }
  if (!model_.virtual_time) link_ = std::make_unique<SimLink>(info_.name, model_, faults_.get());
  if (!model_.limits_memory()) return;
  if (model_.virtual_time) {
    virtual_memory_ = std::make_unique<VirtualMemory>(model_, clock_);
  } else {
    timed_memory_ =
        std::make_unique<TimedMemory>(model_.all_memory_rate(), model_.thread_memory_rate());
  }
}

Memory SimDevice::allocate(std::size_t bytes) {
  if (faults_) faults_->allocate();
  Memory memory = allocate_host_memory(bytes, info_.name);
  if (!model_.virtual_time) return memory;
  sys::Lock lock(mutex_);
  const std::uint64_t pooled = std::min<std::uint64_t>(bytes, pooled_bytes_);
  pooled_bytes_ -= pooled;
  if (pooled == bytes) return memory;
  for (std::int64_t& free_at : channel_free_at_ns_) {
    free_at = std::max(free_at, clock_->now_ns()) + model_.link.allocation_time_ns(bytes - pooled);
  }
  return memory;
}

void SimDevice::release(Memory& memory) noexcept {
  if (model_.link.pools_memory && !memory.adopted) {
    sys::Lock lock(mutex_);
    pooled_bytes_ += memory.bytes;
  }
  release_host_memory(memory);
}

bool SimDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr || peer == this) return true;
  return !model_.host && peer->info().backend == info_.backend;
}

/// Returns the outcome with which the faults of both ends let a copy start.
Outcome SimDevice::start_copy(const CopyJob& job) noexcept {
  Outcome outcome = faults_ ? faults_->copy() : Outcome{};
  for (const Device* end : {job.source.device, job.target.device}) {
    const auto* const device = static_cast<const SimDevice*>(end);
    if (outcome.ok() && device != nullptr && device->faults_) outcome = device->faults_->end();
  }
  return outcome;
}

void SimDevice::copy(const CopyJob& job) noexcept {
  if (Outcome start = start_copy(job); !start.ok()) {
    return job.fail(std::move(start), now_ns());
  }
  if (model_.virtual_time) {
    copy_virtually(direction_of(job, this), job);
  } else {
    link_->submit(direction_of(job, this), job);
  }
}

void SimDevice::copy_virtually(SimDirection direction, const CopyJob& job) noexcept {
  if (!model_.skip_kernels) {
    copy_bytes(job.target.base, job.target.region, job.source.base, job.source.region);
  }
  std::int64_t started = 0, ended = 0;
  {
    sys::Lock lock(mutex_);
    std::int64_t& free_at =
        channel_free_at_ns_[model_.link.full_duplex ? static_cast<std::size_t>(direction) : 0];
    started = std::max(free_at, clock_->now_ns());
    ended = free_at = started + model_.link.transfer_ns(direction, job.source.region);
  }
  const std::int64_t noticed = ended + (model_.resolves_dependences ? 0 : model_.notice_ns);
  try {
    clock_->schedule(noticed, [this, job, started, ended] {
      job.sink->copied(job.token, faults_ ? faults_->end() : Outcome{}, started, ended);
    });
  } catch (...) {
    job.fail(failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to plan a transfer"), started);
  }
}

std::unique_ptr<PlaceDriver> SimDevice::open_place(const PlaceRequest& request, PlaceFeed& feed) {
  if (!model_.resolves_dependences) return open_cores(request, feed);
  auto place = std::make_unique<SimQueuedPlace>(request.name, feed, *this,
                                                model_.virtual_time ? clock_ : nullptr);
  place->cores = open_cores(request, place->queue);
  place->queue.start(*place->cores);
  return place;
}

std::unique_ptr<PlaceDriver> SimDevice::open_cores(const PlaceRequest& request, PlaceFeed& feed) {
  if (!faults_) return open_sound_place(request, feed);
  auto place = std::make_unique<SimFaultyPlace>(feed, *faults_);
  place->driver = open_sound_place(request, place->feed);
  return place;
}

std::unique_ptr<PlaceDriver> SimDevice::open_sound_place(const PlaceRequest& request,
                                                         PlaceFeed& feed) {
  if (model_.virtual_time) {
    return std::make_unique<VirtualPlace>(model_, request.cores, clock_, virtual_memory_.get(),
                                          feed);
  }
  WorkerTeamOptions options{
      .name = request.name, .processors = {}, .pin = pin_, .speed = model_.speed};
  if (model_.skip_kernels) {
    options.pin = false;
    options.processors.assign(request.cores.size(), 0);
    options.stand_in = [this](const Job& job, std::size_t cores) { return pass_time(job, cores); };
    return std::make_unique<WorkerTeam>(std::move(options), feed);
  }
  for (const unsigned core : request.cores) {
    options.processors.push_back(processors_[core % processors_.size()]);
  }
  return std::make_unique<WorkerTeam>(std::move(options), feed);
}

/// In real time: waits for the modelled time of a kernel, its memory traffic and its operations.
/// The worker applies the speed of the core.
Outcome SimDevice::pass_time(const Job& job, std::size_t cores) noexcept {
  const std::int64_t start = sys::now_ns();
  prctl(PR_SET_TIMERSLACK, 1);
  try {
    if (job.cost == nullptr) return {};
    const auto threads = static_cast<double>(cores);
    const KernelWork work = work_of(model_, job, threads, 0);
    if (work.bytes > 0) {
      const double most = model_.memory_bytes_per_s * kLongestKernelNs * 1e-9;
      timed_memory_->move(most > 0 ? std::min(work.bytes, most) : work.bytes, threads);
    }
    const double ns = work.compute_s * 1e9;
    if (ns > 0) sys::sleep_until(start + static_cast<std::int64_t>(std::min(ns, kLongestKernelNs)));
    return {};
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_KERNEL_ERROR);
  }
}

std::int64_t SimDevice::now_ns() const noexcept {
  return model_.virtual_time ? clock_->now_ns() : sys::now_ns();
}

bool SimDevice::wake_at(std::int64_t at_ns) noexcept {
  try {
    clock_->schedule(at_ns, [] {});
    return true;
  } catch (...) {
    return false;
  }
}

bool SimDevice::drive() noexcept { return model_.virtual_time && clock_->drive(); }

}  // namespace weir::rt
