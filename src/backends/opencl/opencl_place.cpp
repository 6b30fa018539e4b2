#include "backends/opencl/opencl_place.hpp"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "backend/invoke.hpp"
#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

using Counts = std::vector<cl_device_partition_property>;

/// Divides a device into sub-devices of so many units; returns the one of that index.
OpenClSubDevice divide(const OpenClDeviceInfo& device, const Counts& counts, std::size_t wanted,
                       const std::string& place) {
  Counts properties = {CL_DEVICE_PARTITION_BY_COUNTS};
  properties.insert(properties.end(), counts.begin(), counts.end());
  properties.insert(properties.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  std::vector<cl_device_id> made(counts.size());
  const cl_int code = OpenClLibrary::get().clCreateSubDevices(
      device.id, properties.data(), static_cast<cl_uint>(made.size()), made.data(), nullptr);
  if (code != CL_SUCCESS) {
    fail(WEIR_STATUS_UNSUPPORTED, "place '{}' cannot be {} of the {} units of {}: {}; use all",
         place, counts[wanted], device.units, device.description, opencl_error(code));
  }
  std::vector<OpenClSubDevice> parts(made.begin(), made.end());
  return std::move(parts[wanted]);
}

/// The part of a device that a place is, empty when that is all of it.
OpenClSubDevice part_of(const OpenClDeviceInfo& device, const PlaceRequest& request) {
  std::vector<unsigned> units = request.cores;
  std::sort(units.begin(), units.end());
  const auto size = static_cast<unsigned>(units.size()), end = units.front() + size;
  if (size == device.units) return {};
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

}  // namespace

OpenClPlace::OpenClPlace(const PlaceRequest& request, const OpenClDeviceInfo& device,
                         PlaceFeed& feed)
    : feed_(feed), part_(part_of(device, request)) {
  const cl_device_id used = part_.get() != nullptr ? part_.get() : device.id;
  context_ = make_opencl_context(device.platform, used);
  queue_ = make_opencl_queue(context_.get(), used);
  programs_.emplace(device, context_.get(), used);
  for (unsigned i = 0; i < request.cores.size(); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->place = this;
    slots_.back()->worker.index = i;
  }
  thread_.emplace(request.name, [this] { serve(); });
}

OpenClPlace::~OpenClPlace() {
  stopping_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  thread_.reset();
  while (callers_.load(std::memory_order_acquire) > 0) sys::yield();
  OpenClLibrary::get().clFinish(queue_.get());
}

void OpenClPlace::serve() noexcept {
  const NoWaitScope no_wait;
  while (!stopping_.load(std::memory_order_relaxed)) {
    bool moved = false;
    for (const auto& slot : slots_) moved |= serve(*slot);
    if (!moved) idle();
  }
}

/// Takes back what is over and hands out the next. Returns whether there was any.
bool OpenClPlace::serve(Slot& slot) noexcept {
  const std::uint32_t state = slot.state.load(std::memory_order_acquire);
  if (state == Slot::under_way) return false;
  if (state == Slot::over) {
    if (slot.event != nullptr) OpenClLibrary::get().clReleaseEvent(slot.event);
    slot.event = nullptr;
    slot.state.store(Slot::empty, std::memory_order_relaxed);
    feed_.finish(slot.worker, slot.job, std::exchange(slot.outcome, {}));
  }
  if (!feed_.next(slot.worker, slot.job)) return state == Slot::over;
  start(slot);
  return true;
}

void OpenClPlace::start(Slot& slot) noexcept {
  const OpenClLibrary& cl = OpenClLibrary::get();
  slot.state.store(Slot::under_way, std::memory_order_relaxed);
  cl_int code = CL_SUCCESS;
  if (slot.job.source != nullptr) {
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
    slot.outcome = programs_->enqueue(queue_.get(), slot.job, {}, &slot.event);
    if (!slot.outcome.ok()) return end(slot, CL_SUCCESS);
  } else {
    void* argument = &slot;
    code = cl.clEnqueueNativeKernel(queue_.get(), run, &argument, sizeof argument, 0, nullptr,
                                    nullptr, 0, nullptr, &slot.event);
  }
  if (code == CL_SUCCESS) {
    code = cl.clSetEventCallback(slot.event, CL_COMPLETE, on_complete, &slot);
    if (code != CL_SUCCESS) cl.clWaitForEvents(1, &slot.event);  // nobody else would
  }
  if (code != CL_SUCCESS) return end(slot, code);
  cl.clFlush(queue_.get());
}

/// The native kernel; the driver has copied the argument.
void CL_CALLBACK OpenClPlace::run(void* argument) {
  const NoWaitScope no_wait;
  Slot& slot = *static_cast<Slot*>(*static_cast<void**>(argument));
  slot.job.started_ns = sys::now_ns();
  slot.outcome = invoke(slot.job);
  slot.job.ended_ns = sys::now_ns();
}

void CL_CALLBACK OpenClPlace::on_complete(cl_event, cl_int status, void* slot) {
  auto& mine = *static_cast<Slot*>(slot);
  if (mine.job.source != nullptr) mine.job.ended_ns = sys::now_ns();
  mine.place->end(mine, status == CL_COMPLETE ? CL_SUCCESS : status);
}

/// The driver is done with a job. Any thread; once the job is seen to be over the place may go.
void OpenClPlace::end(Slot& slot, cl_int code) noexcept {
  callers_.fetch_add(1, std::memory_order_relaxed);
  if (code != CL_SUCCESS) {
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
    slot.outcome = failed_outcome(WEIR_STATUS_DEVICE_ERROR, "the OpenCL driver cannot run it");
    try {
      slot.outcome.message = "the OpenCL driver cannot run it: " + opencl_error(code);
    } catch (...) {  // what there is says enough
    }
  }
  slot.state.store(Slot::over, std::memory_order_seq_cst);
  parking_.unpark_one();
  callers_.fetch_sub(1, std::memory_order_release);
}

bool OpenClPlace::stirring() const noexcept {
  const auto is_over = [](const auto& slot) {
    return slot->state.load(std::memory_order_seq_cst) == Slot::over;
  };
  return feed_.has_work() || stopping_.load(std::memory_order_seq_cst) ||
         std::any_of(slots_.begin(), slots_.end(), is_over);
}

/// Polls for a while, then sleeps, until something stirs.
void OpenClPlace::idle() noexcept {
  const std::int64_t until = sys::now_ns() + config::spin_ns();
  while (sys::now_ns() < until) {
    for (int i = 0; i < 32; ++i) sys::pause();
    if (stirring()) return;
  }
  parking_.prepare();
  if (stirring()) {
    parking_.cancel();
  } else {
    parking_.park();
  }
}

}  // namespace weir::rt
