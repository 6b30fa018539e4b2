#include "backends/opencl/opencl_place.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "backend/copy_bytes.hpp"
#include "backend/invoke.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

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

/// The sub-device of a place, null for the whole device.
cl_device_id part_of(const OpenClDeviceInfo& device, const PlaceRequest& request) {
  std::vector<unsigned> units = request.cores;
  std::sort(units.begin(), units.end());
  const auto size = static_cast<unsigned>(units.size()), end = units.front() + size;
  if (size == device.units) return nullptr;
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

/// Whether a job is a kernel of the kind "opencl", which enqueues work itself, on a discrete
/// device.
bool is_call(const Job& job) noexcept { return job.source == nullptr && !job.is_copy; }

/// "the OpenCL driver cannot run it: CL_...", shorter without memory.
Outcome failed_call(cl_int code) noexcept {
  Outcome outcome = failed_outcome(opencl_failure(code), "the OpenCL driver has failed");
  try {
    outcome.message = "the OpenCL driver cannot run it: " + opencl_error(code);
  } catch (...) {  // the shorter message suffices
  }
  return outcome;
}

}  // namespace

OpenClPlace::OpenClPlace(const PlaceRequest& request, const OpenClDeviceInfo& device,
                         const OpenClDevice* discrete_device, PlaceFeed& feed)
    : feed_(feed), discrete_device_(discrete_device), spin_ns_(config::spin_ns()), slots_(kWindow) {
  cl_device_id const part = discrete_device == nullptr ? part_of(device, request) : nullptr;
  cl_device_id const used = part != nullptr ? part : device.id;
  if (discrete_device == nullptr) context_ = make_opencl_context(device.platform, used);
  cl_context const context =
      discrete_device == nullptr ? context_.get() : discrete_device->context();
  queue_ = make_opencl_queue(context, used, OpenClQueueKind::untimed);
  timed_ = make_opencl_queue(context, used, OpenClQueueKind::timed);
  if (discrete_device != nullptr)
    calls_ = make_opencl_queue(context, used, OpenClQueueKind::in_order);
  clock_offset_ns_ = opencl_clock_offset(timed_.get(), used);
  programs_.emplace(device, context, used,
                    discrete_device == nullptr || discrete_device->shares_addresses()
                        ? nullptr
                        : discrete_device);
  for (Slot& slot : slots_) slot.place = this;
  batch_.place = this;
  events_.reserve(kWindow);
  open_.reserve(kWindow);
  thread_.emplace(request.name, [this] { serve(); });
}

OpenClPlace::~OpenClPlace() {
  stopping_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  thread_.reset();
  for (const OpenClQueue* queue : {&queue_, &timed_, &calls_}) {
    if (queue->get() != nullptr && !may_hang_) OpenClLibrary::get().clFinish(queue->get());
  }
  while (callers_.load(std::memory_order_acquire) > 0) sys::yield();
}

void OpenClPlace::serve() noexcept {
  const NoWaitScope no_wait;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const bool took = take_back();
    const bool gave = hand_out();
    const bool launched = std::exchange(launched_, false);
    if (gave || launched) flush();
    if (broken_.exchange(false, std::memory_order_relaxed) && resubmit()) {
      flush();
      broken_.store(true, std::memory_order_relaxed);
    }
    if (!took && !gave) idle();
  }
}

/// Returns complete jobs to the feed. Returns whether there were any.
bool OpenClPlace::take_back() noexcept {
  const std::uint64_t before = taken_back_;
  sample_progress();
  const std::uint64_t told = completed_by_driver_.load(std::memory_order_seq_cst);
  if (std::exchange(observed_, told) != told) poll_commands(next_);
  for (bool more = true; more && taken_back_ - before < kRound;) {
    poll_commands(seen_);
    const std::size_t open = open_.size();
    retire();
    more = open_.size() > open;
  }
  return taken_back_ != before;
}

/// Returns the jobs that are known to be complete.
void OpenClPlace::retire() noexcept {
  const std::uint64_t ended = ended_.load(std::memory_order_acquire);
  if (ended == taken_back_) return;
  for (std::uint64_t number = first_; taken_back_ < ended && number < next_; ++number) {
    Slot& slot = slot_of(number);
    if (slot.job.id != number || !slot.complete.load(std::memory_order_acquire)) continue;
    ++taken_back_;
    if (slot.command_failed.load(std::memory_order_relaxed)) find_abandoned();
    for (cl_event* event : {&slot.event, &slot.begin}) {
      if (*event != nullptr && !keeps(slot)) OpenClLibrary::get().clReleaseEvent(*event);
      *event = nullptr;
    }
    feed_.finish(slot.worker, slot.job, std::exchange(slot.outcome, {}));
    slot.job.id = 0;
    for (Slot* next = std::exchange(slot.followers, nullptr); next != nullptr;) {
      add_follower(*std::exchange(next, next->next));
    }
  }
  while (first_ < next_ && slot_of(first_).job.id == 0) ++first_;
  failed_.forget_before(first_);
}

/// Polls a driver command only once all its predecessors have been returned to the feed.
void OpenClPlace::add_follower(Slot& slot) noexcept {
  for (const std::uint64_t earlier : slot.waits) {
    Slot& other = slot_of(earlier);
    if (other.job.id != earlier) continue;
    slot.next = std::exchange(other.followers, &slot);
    return;
  }
  if (slot.held) return launch_held(slot);
  open_.push_back({slot.job.id, &slot, false});
}

/// Whether a job of a discrete device must be held. A predecessor of a call could fail in the queue
/// for calls, and every later command of that queue would be lost; so in that queue calls wait only
/// for each other.
bool OpenClPlace::must_hold(const Slot& slot) noexcept {
  if (discrete_device_ == nullptr) return false;
  return std::any_of(slot.waits.begin(), slot.waits.end(), [&](std::uint64_t earlier) {
    const Slot& other = slot_of(earlier);
    if (other.job.id != earlier || other.complete.load(std::memory_order_acquire)) return false;
    return other.held || (is_call(slot.job) && !is_call(other.job));
  });
}

/// Enqueues a held job, once all its predecessors have been returned.
void OpenClPlace::launch_held(Slot& slot) noexcept {
  slot.held = false;
  if (failed_.any_of(slot.waits)) {
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
    slot.outcome = {WEIR_STATUS_POISONED, {}};
    return end(slot);
  }
  launched_ = true;
  batch_ = {this, slot.job.id, slot.job.id + 1};
  launch(slot);
  batch_.end = next_;
  begin_batch();
}

/// Samples one job in kStride to estimate the progress of the device: drivers lock an event that is
/// queried, so polling a running command delays it. For the same reason this runs once before a
/// round, not for each job.
void OpenClPlace::sample_progress() noexcept {
  seen_ = std::max(seen_, first_ - 1);
  for (std::uint64_t mark = seen_ + kStride; mark < next_; mark += kStride) {
    const Slot& slot = slot_of(mark);
    const bool over = slot.job.id != mark || slot.complete.load(std::memory_order_acquire) ||
                      (slot.event != nullptr && opencl_status(slot.event) <= CL_COMPLETE);
    if (!over) return;
    seen_ = mark;
  }
}

/// Completes the finished driver commands up to a job. Returns whether there were any.
bool OpenClPlace::poll_commands(std::uint64_t last) noexcept {
  const auto over = [&](const Open& open) {
    if (open.number > last) return false;
    Slot& slot = *open.slot;
    const cl_int status = opencl_status(slot.event);
    if (status > CL_COMPLETE) return false;
    if (slot.abandoned && !failed_.any_of(slot.waits)) return false;  // for resubmit()
    // Querying the status does not make the device's writes visible.
    if (discrete_device_ != nullptr) OpenClLibrary::get().clWaitForEvents(1, &slot.event);
    complete(slot, status);
    return true;
  };
  const std::size_t found = std::erase_if(open_, over);
  unobserved_ -= found;
  return found > 0;
}

/// Registers a completion callback for each polled command, before the thread parks.
void OpenClPlace::request_callbacks() noexcept {
  const OpenClLibrary& cl = OpenClLibrary::get();
  for (Open& open : open_) {
    if (std::exchange(open.watched, true)) continue;
    callers_.fetch_add(1, std::memory_order_relaxed);
    cl_event const event = open.slot->event;
    if (cl.clSetEventCallback(event, CL_COMPLETE, on_complete, this) == CL_SUCCESS) continue;
    cl.clWaitForEvents(1, &event);  // no callback: wait here
    on_complete(event, CL_COMPLETE, this);
  }
}

/// Submits jobs to the driver until the feed is empty or the window is full. Returns whether there
/// were any.
bool OpenClPlace::hand_out() noexcept {
  round_ = next_;
  while (next_ - round_ < kRound && has_room()) {
    Slot& slot = slot_of(next_);
    if (!feed_.next(slot.worker, slot.job)) break;
    slot.abandoned = false;
    slot.command_failed.store(false, std::memory_order_relaxed);
    slot.complete.store(false, std::memory_order_relaxed);
    slot.job.brief = slot.job.brief &&
                     discrete_device_ == nullptr;  // a discrete device runs one call per command
    const std::uint64_t small = small_copy(slot.job);
    const bool calls = slot.job.brief && batch_.bytes == 0;
    const bool joins = calls || ((slot.job.brief || small > 0) && waits_alike(slot.job.waits));
    const bool room = next_ - batch_.first < kBatch && batch_.bytes + small <= kBatchBytes;
    if (!joins || !room) submit();
    batch_.end = ++next_;
    batch_.bytes += small;
    try {
      slot.waits.assign(slot.job.waits.begin(), slot.job.waits.end());
      add_waits(slot);
    } catch (...) {
      fail_batch(CL_OUT_OF_HOST_MEMORY);
    }
    if (!slot.job.brief && small == 0) submit();
  }
  submit();
  return next_ != round_;
}

/// Returns the bytes of a copy that takes less time than starting a command on another unit, 0 for
/// other jobs.
std::uint64_t OpenClPlace::small_copy(const Job& job) const noexcept {
  if (!job.is_copy || discrete_device_ != nullptr) return 0;
  const Region& region = job.from.region;
  const std::uint64_t bytes = std::uint64_t{region.row} * region.rows * region.planes;
  return bytes <= kSmallCopy ? bytes : 0;
}

/// Returns the event of an earlier job that is not complete or whose command has failed; nullptr
/// for other jobs, and for jobs of the batch, which runs in order.
cl_event OpenClPlace::event_of(std::uint64_t earlier) noexcept {
  if (earlier >= batch_.first) return nullptr;
  const Slot& other = slot_of(earlier);
  if (other.job.id != earlier) return nullptr;
  if (!other.complete.load(std::memory_order_acquire)) return slot_of(other.last).event;
  return other.command_failed.load(std::memory_order_relaxed) ? other.event : nullptr;
}

bool OpenClPlace::awaits(cl_event event) const noexcept {
  return std::find(events_.begin(), events_.end(), event) != events_.end();
}

/// Whether adding a job to the batch makes neither the batch nor the job wait longer.
bool OpenClPlace::waits_alike(std::span<const std::uint64_t> waits) noexcept {
  const bool longer = std::any_of(waits.begin(), waits.end(), [this](std::uint64_t earlier) {
    const cl_event event = event_of(earlier);
    return event != nullptr && !awaits(event);
  });
  if (longer) return false;
  const bool follows = std::any_of(waits.begin(), waits.end(), [this](std::uint64_t earlier) {
    return earlier >= batch_.first;
  });
  return follows || std::all_of(events_.begin(), events_.end(), [&](cl_event event) {
           return std::any_of(waits.begin(), waits.end(),
                              [&](std::uint64_t earlier) { return event_of(earlier) == event; });
         });
}

/// Adds the events that a job of the batch waits for, and checks whether one has failed. A compiled
/// kernel does not check events of its own round: it would cost a driver call for each.
void OpenClPlace::add_waits(const Slot& slot) {
  const bool asks = slot.job.source == nullptr || broken_.load(std::memory_order_relaxed);
  for (const std::uint64_t earlier : slot.waits) {
    cl_event const event = event_of(earlier);
    if (event == nullptr || awaits(event)) continue;
    events_.push_back(event);
    if ((asks || earlier < round_) && opencl_status(event) < CL_COMPLETE) failed_wait_ = event;
  }
}

/// Enqueues the batch as one command.
void OpenClPlace::submit() noexcept {
  if (batch_.first == batch_.end) return;
  Slot& last = slot_of(batch_.end - 1);
  if (last.job.source != nullptr || discrete_device_ != nullptr) return launch(last);
  for (std::uint64_t number = batch_.first; number < batch_.end; ++number) {
    slot_of(number).last = batch_.end - 1;
  }
  cl_int code = CL_SUCCESS;
  if (failed_wait_ != nullptr) {
    abandon_command(last);
  } else {
    code = OpenClLibrary::get().clEnqueueNativeKernel(
        queue_.get(), run, &batch_, sizeof batch_, 0, nullptr, nullptr,
        static_cast<cl_uint>(events_.size()), events_.empty() ? nullptr : events_.data(),
        &last.event);
  }
  if (code != CL_SUCCESS) return fail_batch(code);
  begin_batch();
}

void OpenClPlace::begin_batch() noexcept {
  batch_.first = batch_.end;
  batch_.bytes = 0;
  events_.clear();
  failed_wait_ = nullptr;
}

/// PoCL never completes a command that waits for an event that has already failed: the command
/// takes the failed event instead.
void OpenClPlace::abandon_command(Slot& slot) noexcept {
  OpenClLibrary::get().clRetainEvent(failed_wait_);
  slot.event = failed_wait_;
  slot.abandoned = true;
  slot.command_failed.store(true, std::memory_order_relaxed);
  broken_.store(true, std::memory_order_relaxed);
}

/// Returns the event of an earlier job whose command has failed or was abandoned, unless it is in
/// the same command; else nullptr.
cl_event OpenClPlace::lost_event(std::uint64_t earlier, const Slot& command) noexcept {
  const Slot& other = slot_of(earlier);
  if (other.job.id != earlier) return nullptr;
  const bool over = other.complete.load(std::memory_order_acquire);
  const Slot& theirs = over ? other : slot_of(other.last);
  const bool lost = &theirs != &command && theirs.command_failed.load(std::memory_order_relaxed);
  return lost ? theirs.event : nullptr;
}

/// Finds commands that never run because a predecessor that has not been returned has failed: it
/// may have failed between the check in add_waits() and the call that enqueued them.
void OpenClPlace::find_abandoned() noexcept {
  for (std::uint64_t number = first_; number < next_; ++number) {
    Slot& slot = slot_of(number);
    if (slot.job.id != number || slot.complete.load(std::memory_order_acquire)) continue;
    Slot& command = slot_of(slot.last);
    for (const std::uint64_t earlier : slot.waits) {
      cl_event const failed = lost_event(earlier, command);
      if (failed != nullptr) fail_after_submit(command, failed);
    }
  }
}

/// Whether the event of a command must never be released: PoCL would mistake a new event at its
/// address for the one that a hanging command waits for, and run that command.
bool OpenClPlace::keeps(const Slot& slot) const noexcept {
  return may_hang_ && slot.command_failed.load(std::memory_order_relaxed);
}

/// Abandons a submitted command after the failure of a predecessor; the driver may fail the command
/// itself, soon or never.
void OpenClPlace::fail_after_submit(Slot& command, cl_event failed) noexcept {
  const cl_int status = opencl_status(command.event);
  if (command.abandoned || command.held || status == CL_RUNNING || status == CL_COMPLETE) return;
  command.abandoned = true;
  command.command_failed.store(true, std::memory_order_relaxed);
  broken_.store(true, std::memory_order_relaxed);
  if (status < CL_COMPLETE) return;
  const OpenClLibrary& cl = OpenClLibrary::get();
  cl.clRetainEvent(failed);
  cl.clReleaseEvent(std::exchange(command.event, failed));
  may_hang_ = true;
}

/// Enqueues again the commands that were abandoned because a predecessor failed, so that those of
/// their jobs run that do not depend on it. Returns whether commands remain that may be
/// resubmitted.
bool OpenClPlace::resubmit() noexcept {
  bool left = false;
  for (std::uint64_t number = first_; number < next_; ++number) {
    Slot& slot = slot_of(number);
    const bool native = discrete_device_ == nullptr && slot.job.source == nullptr;
    if (slot.job.id != number || slot.complete.load(std::memory_order_acquire)) continue;
    if (!native && !slot.abandoned) continue;
    left = true;
    batch_ = {this, number, slot.last + 1};
    number = slot.last;
    if (native || is_still_watched(slot)) enqueue_resubmitted();
    batch_.end = next_;
    begin_batch();
  }
  return left;
}

/// Stops polling an abandoned command if none of its predecessors has failed. Returns whether it
/// was polled.
bool OpenClPlace::is_still_watched(const Slot& slot) noexcept {
  if (failed_.any_of(slot.waits)) return false;
  const auto same = [&](const Open& open) { return open.slot == &slot; };
  const std::size_t found = std::erase_if(open_, same);
  unobserved_ -= found;
  return found > 0;
}

/// Enqueues the batch again if it failed, unless a predecessor has failed.
void OpenClPlace::enqueue_resubmitted() noexcept {
  Slot& last = slot_of(batch_.end - 1);
  if (opencl_status(last.event) >= CL_COMPLETE) return;
  try {
    for (std::uint64_t number = batch_.first; number < batch_.end; ++number) {
      add_waits(slot_of(number));
    }
  } catch (...) {
    return fail_batch(CL_OUT_OF_HOST_MEMORY);
  }
  if (failed_wait_ != nullptr) return;
  if (!keeps(last)) OpenClLibrary::get().clReleaseEvent(last.event);
  last.event = nullptr;
  last.abandoned = false;
  last.command_failed.store(false, std::memory_order_relaxed);
  submit();
}

/// Enqueues a job that is not host code, the only job of the batch.
void OpenClPlace::launch(Slot& slot) noexcept {
  slot.last = slot.job.id;
  slot.worker.index = 0;
  slot.held = failed_wait_ == nullptr && must_hold(slot);
  if (slot.held) {
    begin_batch();
    return add_follower(slot);
  }
  if (failed_wait_ != nullptr) {
    abandon_command(slot);
  } else {
    slot.outcome = enqueue(slot);
    const bool poisoned = discrete_device_ != nullptr && failed_.any_of(slot.waits);
    if (slot.outcome.ok() && poisoned) slot.outcome = {WEIR_STATUS_POISONED, {}};
  }
  if (!slot.outcome.ok()) failed_.add(slot.job.id);  // before successors are called
  begin_batch();
  if (slot.event == nullptr) {
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
    if (slot.outcome.ok() && failed_.any_of(slot.waits)) slot.outcome = {WEIR_STATUS_POISONED, {}};
    return end(slot);
  }
  if (slot.job.timed) slot.enqueued_ns = sys::now_ns();
  ++unobserved_;
  add_follower(slot);
}

/// Enqueues the commands of a job. If the slot has no event afterwards, nothing was enqueued; the
/// outcome has the reason for a failure.
Outcome OpenClPlace::enqueue(Slot& slot) noexcept {
  const cl_int code = await_memory();
  if (code != CL_SUCCESS) return failed_call(code);
  if (slot.job.source != nullptr) {
    return programs_->enqueue(queue_for(slot.job), slot.job, events_, &slot.event);
  }
  if (!slot.job.is_copy) return call(slot);
  return failed_.any_of(slot.waits) ? enqueue_nothing(slot) : enqueue_copy(slot);
}

/// Enqueues a marker in place of a poisoned copy, whose target stays unchanged.
Outcome OpenClPlace::enqueue_nothing(Slot& slot) noexcept {
  if (events_.empty()) return {};
  const cl_int code = OpenClLibrary::get().clEnqueueMarkerWithWaitList(
      queue_for(slot.job), static_cast<cl_uint>(events_.size()), events_.data(), &slot.event);
  return code == CL_SUCCESS ? Outcome{} : failed_call(code);
}

/// Makes later commands wait until the device has cleared new memory.
cl_int OpenClPlace::await_memory() noexcept {
  const std::uint64_t clears =
      discrete_device_ == nullptr ? 0 : discrete_device_->copies().clears();
  if (clears == clears_) return CL_SUCCESS;
  for (const OpenClQueue* queue : {&queue_, &timed_, &calls_}) {
    const cl_int code = discrete_device_->copies().order_after_clear(queue->get());
    if (code != CL_SUCCESS) return code;
  }
  clears_ = clears;
  return CL_SUCCESS;
}

/// Each part waits for the one before, so the last event covers all parts.
Outcome OpenClPlace::enqueue_copy(Slot& slot) noexcept {
  const Job& job = slot.job;
  const OpenClEnds ends = discrete_device_->ends_of(job.from, job.to);
  const std::uint64_t parts = count_opencl_parts(job.from.region, ends);
  for (std::uint64_t part = 0; part < parts; ++part) {
    cl_event before = slot.event, event = nullptr;
    const std::span<const cl_event> waits =
        before == nullptr ? std::span<const cl_event>(events_) : std::span(&before, 1);
    const cl_int code =
        enqueue_opencl_part(queue_for(job), job.from, job.to, ends, part, waits, &event);
    if (code != CL_SUCCESS) {
      if (slot.begin == before) slot.begin = nullptr;
      return failed_call(code);
    }
    if (before != nullptr && opencl_status(before) < CL_COMPLETE) {
      if (slot.begin == before) slot.begin = nullptr;
      OpenClLibrary::get().clReleaseEvent(event);
      may_hang_ = true;  // the part may never complete
      return {};
    }
    slot.event = event;
    if (part == 0 && parts > 1 && job.timed) slot.begin = event;
    if (before != nullptr && before != slot.begin) OpenClLibrary::get().clReleaseEvent(before);
  }
  return {};
}

/// Calls a function that enqueues its commands between two markers. The queue is in order, so these
/// follow all earlier commands.
Outcome OpenClPlace::call(Slot& slot) noexcept {
  Job& job = slot.job;
  if (job.function == nullptr) {
    return failed_outcome(WEIR_STATUS_UNSUPPORTED, "it has no code for opencl");
  }
  cl_int code = CL_SUCCESS;
  if (job.timed) code = mark(&slot.begin);
  if (code != CL_SUCCESS) return failed_call(code);
  job.call.queue = calls_.get();
  const bool doomed = failed_.any_of(slot.waits);
  Outcome outcome = doomed ? Outcome{WEIR_STATUS_POISONED, {}} : invoke(job);
  code = mark(&slot.event);
  if (code == CL_SUCCESS) return outcome;
  OpenClLibrary::get().clFinish(calls_.get());  // its commands may be in flight
  return outcome.ok() ? failed_call(code) : std::move(outcome);
}

cl_int OpenClPlace::mark(cl_event* event) const noexcept {
  return OpenClLibrary::get().clEnqueueMarkerWithWaitList(calls_.get(), 0, nullptr, event);
}

void OpenClPlace::flush() const noexcept {
  const OpenClLibrary& cl = OpenClLibrary::get();
  cl.clFlush(queue_.get());
  cl.clFlush(timed_.get());
  if (discrete_device_ != nullptr) cl.clFlush(calls_.get());
}

/// Wakes the thread, which polls. Makes no driver call: rusticl has locked the event. Ignores the
/// status: PoCL reports CL_COMPLETE for a command that failed before the callback was registered.
void CL_CALLBACK OpenClPlace::on_complete(cl_event, cl_int, void* place) {
  auto& mine = *static_cast<OpenClPlace*>(place);
  mine.completed_by_driver_.fetch_add(1, std::memory_order_seq_cst);
  mine.parking_.unpark_one();
  mine.callers_.fetch_sub(1, std::memory_order_release);  // now the place may be destroyed
}

/// Uses the driver's clock; without one, a command begins when the one before it has ended.
void OpenClPlace::note_times(Slot& slot) noexcept {
  if (!clock_offset_ns_) {
    slot.job.ended_ns = sys::now_ns();
    slot.job.started_ns = std::max(slot.enqueued_ns, last_end_ns_);
    last_end_ns_ = slot.job.ended_ns;
    return;
  }
  const bool marked = slot.begin != nullptr && !slot.job.is_copy;
  cl_event const first = slot.begin != nullptr ? slot.begin : slot.event;
  const std::int64_t began = marked ? opencl_time(first, CL_PROFILING_COMMAND_END)
                                    : opencl_time(first, CL_PROFILING_COMMAND_START);
  slot.job.started_ns = began + *clock_offset_ns_;
  slot.job.ended_ns = opencl_time(slot.event, CL_PROFILING_COMMAND_END) + *clock_offset_ns_;
}

/// Completes a driver command with its status.
void OpenClPlace::complete(Slot& slot, cl_int status) noexcept {
  if (slot.job.timed) {
    note_times(slot);
  }
  if (slot.outcome.ok() && failed_.any_of(slot.waits)) {
    slot.outcome = {WEIR_STATUS_POISONED, {}};
  } else if (slot.outcome.ok() && status != CL_COMPLETE) {
    slot.outcome = failed_call(status);
  }
  if (status < CL_COMPLETE) {
    slot.command_failed.store(true, std::memory_order_relaxed);
    broken_.store(true, std::memory_order_relaxed);
  }
  end(slot);
}

void OpenClPlace::fail_batch(cl_int code) noexcept {
  for (std::uint64_t number = batch_.first; number < batch_.end; ++number) {
    Slot& slot = slot_of(number);
    slot.job.started_ns = slot.job.ended_ns = sys::now_ns();
    slot.outcome = failed_call(code);
    end(slot);
  }
  begin_batch();
}

/// The native kernel; the driver has copied its argument.
void CL_CALLBACK OpenClPlace::run(void* argument) {
  const NoWaitScope no_wait;
  const Batch batch = *static_cast<Batch*>(argument);
  OpenClPlace& place = *batch.place;
  place.callers_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint64_t number = batch.first; number < batch.end; ++number) {
    place.run(place.slot_of(number));
  }
  place.callers_.fetch_sub(1, std::memory_order_release);
}

void OpenClPlace::run(Slot& slot) noexcept {
  const unsigned unit = take_unit();
  slot.worker.index = unit;
  slot.job.started_ns = slot.job.ended_ns = 0;
  if (slot.job.timed) slot.job.started_ns = sys::now_ns();
  slot.outcome = perform(slot);
  if (slot.job.timed) slot.job.ended_ns = sys::now_ns();
  busy_.fetch_and(~(std::uint64_t{1} << unit), std::memory_order_relaxed);
  end(slot);
}

Outcome OpenClPlace::perform(const Slot& slot) const noexcept {
  const Job& job = slot.job;
  if (failed_.any_of(slot.waits)) return {WEIR_STATUS_POISONED, {}};
  if (!job.is_copy) return invoke(job);
  copy_bytes(job.to.base, job.to.region, job.from.base, job.from.region);
  return {};
}

/// Returns the lowest idle unit.
unsigned OpenClPlace::take_unit() noexcept {
  std::uint64_t busy = busy_.load(std::memory_order_relaxed);
  for (;;) {
    const auto unit = static_cast<unsigned>(std::countr_one(busy)) % 64;
    const std::uint64_t taken = busy | (std::uint64_t{1} << unit);
    if (busy_.compare_exchange_weak(busy, taken, std::memory_order_relaxed)) return unit;
  }
}

/// Marks a job as complete. Any thread, which must not access the slot afterwards.
void OpenClPlace::end(Slot& slot) noexcept {
  if (!slot.outcome.ok()) failed_.add(slot.job.id);
  slot.complete.store(true, std::memory_order_release);
  ended_.fetch_add(1, std::memory_order_seq_cst);
  parking_.unpark_one();
}

bool OpenClPlace::has_work() const noexcept {
  return ended_.load(std::memory_order_seq_cst) != taken_back_ ||
         completed_by_driver_.load(std::memory_order_seq_cst) != observed_ ||
         (has_room() && feed_.has_work()) || stopping_.load(std::memory_order_seq_cst);
}

/// Polls for a while, then parks, until has_work(). While many small commands are in flight, or
/// commands may fail, the thread first sleeps for kParkNs to leave the core to the driver.
void OpenClPlace::idle() noexcept {
  const bool broken = broken_.load(std::memory_order_relaxed);
  if (unobserved_ >= kManyUnobserved || broken) {
    sys::sleep_until(sys::now_ns() + kParkNs);
    sample_progress();
    // Polling everything would query a thousand independent commands, few of which can be complete.
    if (poll_commands(seen_) || poll_commands(broken ? next_ : seen_ + kStride) || has_work() ||
        broken)
      return;
  }
  const std::int64_t until = sys::now_ns() + spin_ns_;
  while (sys::now_ns() < until) {
    for (int i = 0; i < 32; ++i) sys::pause();
    if (poll_commands(next_) || has_work()) return;
  }
  request_callbacks();
  parking_.prepare();
  if (has_work()) {
    parking_.cancel();
  } else {
    parking_.park();
  }
}

}  // namespace weir::rt
