#include "backends/opencl/opencl_copies.hpp"

#include <algorithm>
#include <array>

#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

using Triple = std::array<std::size_t, 3>;

/// Row stride; 0 for a single row.
std::size_t pitch(const Region& region) noexcept {
  return region.rows > 1 ? region.row_stride : region.row;
}

/// The offset of a row, counted over all planes.
std::size_t row_begin(const Region& region, std::uint64_t index) noexcept {
  return region.offset + index / region.rows * region.plane_stride +
         index % region.rows * region.row_stride;
}

}  // namespace

std::uint64_t count_opencl_parts(const Region& region, const OpenClEnds& ends) noexcept {
  const std::uint64_t planes = region.planes;
  return ends.source == ends.target ? planes * region.rows : planes;
}

cl_int enqueue_opencl_part(cl_command_queue queue, const CopyEnd& source, const CopyEnd& target,
                           const OpenClEnds& ends, std::uint64_t part,
                           std::span<const cl_event> waits, cl_event* event) noexcept {
  const OpenClLibrary& cl = OpenClLibrary::get();
  const auto count = static_cast<cl_uint>(waits.size());
  const cl_event* const events = waits.empty() ? nullptr : waits.data();
  const Region &from = source.region, &to = target.region;
  if (ends.source == ends.target) {
    return cl.clEnqueueCopyBuffer(queue, ends.source, ends.target, row_begin(from, part),
                                  row_begin(to, part), from.row, count, events, event);
  }
  const Triple size{from.row, from.rows, 1}, zero{0, 0, 0};
  const std::size_t source_begin = from.offset + part * from.plane_stride;
  const std::size_t target_begin = to.offset + part * to.plane_stride;
  const Triple source_origin{source_begin, 0, 0}, target_origin{target_begin, 0, 0};
  if (ends.source == nullptr) {
    return cl.clEnqueueWriteBufferRect(queue, ends.target, CL_FALSE, target_origin.data(),
                                       zero.data(), size.data(), pitch(to), 0, pitch(from), 0,
                                       source.base + source_begin, count, events, event);
  }
  if (ends.target == nullptr) {
    return cl.clEnqueueReadBufferRect(queue, ends.source, CL_FALSE, source_origin.data(),
                                      zero.data(), size.data(), pitch(from), 0, pitch(to), 0,
                                      target.base + target_begin, count, events, event);
  }
  return cl.clEnqueueCopyBufferRect(queue, ends.source, ends.target, source_origin.data(),
                                    target_origin.data(), size.data(), pitch(from), 0, pitch(to), 0,
                                    count, events, event);
}

struct OpenClCopies::CopyInFlight {
  OpenClCopies* copies = nullptr;
  CopyInFlight* next = nullptr;
  CopyJob job;
  sys::Atomic<std::uint64_t> open{0};  ///< commands that are not complete, and one for start()
  sys::Atomic<std::int32_t> error{CL_SUCCESS};
  std::int64_t enqueued_ns = 0;
};

OpenClCopies::OpenClCopies(const std::string& owner, OpenClQueue queue)
    : owner_(owner), queue_(std::move(queue)) {}

OpenClCopies::~OpenClCopies() { OpenClLibrary::get().clFinish(queue_.get()); }

void OpenClCopies::clear(cl_mem buffer, std::size_t bytes) {
  const OpenClLibrary& cl = OpenClLibrary::get();
  constexpr char kZero = 0;
  const auto check = [this](cl_int code) {
    check_opencl(code, fmt::format("domain '{}' cannot clear its memory", owner_));
  };
  const sys::Lock lock(clearing_);
  cl_event const before = clear_.get();
  const bool waits = before != nullptr && opencl_status(before) >= CL_COMPLETE;
  cl_event event = nullptr;
  check(cl.clEnqueueFillBuffer(queue_.get(), buffer, &kZero, sizeof kZero, 0, bytes, waits ? 1 : 0,
                               waits ? &before : nullptr, &event));
  clear_ = OpenClEvent(event);
  check(cl.clEnqueueBarrierWithWaitList(queue_.get(), 1, &event, nullptr));
  cl.clFlush(queue_.get());
  clears_.fetch_add(1, std::memory_order_release);
}

/// PoCL would wait forever for a failed event.
cl_int OpenClCopies::order_after_clear(cl_command_queue queue) const noexcept {
  const sys::Lock lock(clearing_);
  cl_event const event = clear_.get();
  if (event == nullptr) return CL_SUCCESS;
  const cl_int status = opencl_status(event);
  if (status < CL_COMPLETE) return status;
  return OpenClLibrary::get().clEnqueueBarrierWithWaitList(queue, 1, &event, nullptr);
}

void OpenClCopies::wait_until_cleared() const noexcept {
  const OpenClLibrary& cl = OpenClLibrary::get();
  cl_event event = nullptr;
  {
    const sys::Lock lock(clearing_);
    event = clear_.get();
    if (event != nullptr) cl.clRetainEvent(event);
  }
  if (event == nullptr) return;
  cl.clWaitForEvents(1, &event);
  cl.clReleaseEvent(event);
}

OpenClCopies::CopyInFlight* OpenClCopies::take() {
  const sys::Lock lock(mutex_);
  if (free_ == nullptr) {
    copies_.push_back(std::make_unique<CopyInFlight>());
    copies_.back()->copies = this;
    return copies_.back().get();
  }
  return std::exchange(free_, free_->next);
}

void OpenClCopies::give(CopyInFlight& in_flight) noexcept {
  const sys::Lock lock(mutex_);
  in_flight.next = std::exchange(free_, &in_flight);
}

void OpenClCopies::start(const CopyJob& job, const OpenClEnds& ends) noexcept {
  CopyInFlight* in_flight = nullptr;
  try {
    in_flight = take();
  } catch (...) {
    return job.fail(failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory for a copy"));
  }
  const OpenClLibrary& cl = OpenClLibrary::get();
  const std::uint64_t parts = count_opencl_parts(job.source.region, ends);
  in_flight->job = job;
  in_flight->error.store(CL_SUCCESS, std::memory_order_relaxed);
  in_flight->enqueued_ns = sys::now_ns();
  in_flight->open.store(parts + 1, std::memory_order_release);
  std::uint64_t unborn = 1;
  for (std::uint64_t part = 0; part < parts; ++part) {
    cl_event event = nullptr;
    const cl_int code =
        enqueue_opencl_part(queue_.get(), job.source, job.target, ends, part, {}, &event);
    if (code == CL_SUCCESS) {
      if (cl.clSetEventCallback(event, CL_COMPLETE, on_complete, in_flight) != CL_SUCCESS) {
        cl.clWaitForEvents(1, &event);  // no callback: wait here
        on_complete(event, opencl_status(event), in_flight);
      }
      // PoCL reports CL_COMPLETE for a command that failed before the callback was registered.
      const cl_int status = opencl_status(event);
      if (status < CL_COMPLETE) in_flight->error.store(status, std::memory_order_relaxed);
      cl.clReleaseEvent(event);
      continue;
    }
    in_flight->error.store(code, std::memory_order_relaxed);
    unborn += parts - part;
    break;
  }
  cl.clFlush(queue_.get());
  count_complete(*in_flight, unborn);
}

/// Makes no driver call: rusticl has locked the event.
void CL_CALLBACK OpenClCopies::on_complete(cl_event, cl_int status, void* in_flight) {
  const NoWaitScope no_wait;
  auto& mine = *static_cast<CopyInFlight*>(in_flight);
  if (status != CL_COMPLETE) mine.error.store(status, std::memory_order_relaxed);
  mine.copies->count_complete(mine, 1);
}

/// Counts completed commands of a copy; the last one notifies the sink. A copy occupies the link
/// from when it was enqueued and the copy before had ended.
void OpenClCopies::count_complete(CopyInFlight& in_flight, std::uint64_t commands) noexcept {
  if (in_flight.open.fetch_sub(commands, std::memory_order_acq_rel) != commands) return;
  const CopyJob job = in_flight.job;
  const cl_int error = in_flight.error.load(std::memory_order_relaxed);
  const std::int64_t ended = sys::now_ns();
  const std::int64_t before = last_end_ns_.exchange(ended, std::memory_order_relaxed);
  const std::int64_t started = std::min(std::max(in_flight.enqueued_ns, before), ended);
  give(in_flight);
  Outcome outcome;
  if (error != CL_SUCCESS) {
    outcome = failed_outcome(opencl_failure(error), "the OpenCL driver cannot copy");
    try {
      outcome.message =
          fmt::format("domain '{}': the copy failed: {}", owner_, opencl_error(error));
    } catch (...) {  // the shorter message suffices
    }
  }
  job.sink->copied(job.token, std::move(outcome), error == CL_SUCCESS ? started : ended, ended);
}

}  // namespace weir::rt
