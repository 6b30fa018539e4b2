#include "backends/cuda/cuda_place.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "backend/invoke.hpp"
#include "backend/launch_arguments.hpp"
#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// Most jobs in flight: the driver blocks a thread that enqueues thousands.
constexpr std::size_t kWindow = 256;
/// Jobs taken before the first of them is enqueued, to find those with several successors.
constexpr std::size_t kLookAhead = 16;
static_assert(kLookAhead <= CudaStreams::kGathered, "all that are taken may be small copies");
/// The device writes a mark in a stream after this many jobs, and after the last one when there are
/// no more jobs and it has written the mark before.
constexpr std::uint64_t kMarkEvery = 16;

/// Index of the direction of a copy: 0 to the device, 1 to the host.
unsigned direction_of(const Job& job) noexcept { return job.from.device == nullptr ? 0 : 1; }

constexpr std::int64_t kMinParkNs = 1'000'000, kMaxParkNs = 20'000'000;
/// Times relative to an older event are wrong by microseconds.
constexpr std::int64_t kReferenceAge = 8'000'000'000;

const char* name_of(const Job& job) noexcept {
  if (job.call.name != nullptr) return job.call.name;
  return job.is_copy ? "copy" : "kernel";
}

}  // namespace

CudaPlace::CudaPlace(const std::string& name, CudaContext& context, const CudaMemory& memory,
                     CudaKernels& kernels, std::vector<CUdevResource> part, unsigned stream_count,
                     PlaceFeed& feed)
    : context_(context),
      kernels_(kernels),
      feed_(feed),
      spin_ns_(config::spin_ns()),
      partition_(name, context, std::move(part)),
      jobs_(kWindow),
      failed_(kWindow) {
  taken_.reserve(kLookAhead);
  held_.reserve(kWindow);
  points_.reserve(kWindow);
  {
    const CudaScope scope(
        partition_.context());  // a green context may be current on one thread only
    streams_.emplace(context, memory, partition_, stream_count, bell_);
  }
  try {
    fifos_.resize(streams_->order_state().count());
    thread_.emplace(name, [this] { serve(); });
  } catch (...) {
    release_streams();
    throw;
  }
}

CudaPlace::~CudaPlace() {
  stopping_.store(true, std::memory_order_seq_cst);
  bell_.notify();
  thread_.reset();  // first free what libraries keep for its streams
  release_streams();
}

/// Page-locked memory must be freed with a context current.
void CudaPlace::release_streams() noexcept {
  try {
    const CudaScope scope(partition_.context());
    streams_.reset();
  } catch (...) {  // the context is lost, and they with it
  }
}

void CudaPlace::serve() noexcept {
  const NoWaitScope no_wait;
  CudaLibrary::get().cuCtxSetCurrent(partition_.context());
  for (;;) {
    bool moved = collect();
    moved |= continue_copies();
    moved |= take_jobs();
    start_jobs();
    if (moved) {
      park_ns_ = kMinParkNs;
    } else if (stopping_.load(std::memory_order_relaxed) && jobs_.in_use() == 0) {
      break;
    } else {
      idle();
    }
  }
  streams_->drain();
  reference_.reset();  // while the context is current
}

bool CudaPlace::take_jobs() noexcept {
  feed_empty_ = false;
  take_held();
  while (!feed_empty_ && taken_.size() < kLookAhead && !jobs_.full()) {
    CudaJob& entry = *jobs_.take();
    feed_empty_ = !take_one(entry);
    if (feed_empty_) jobs_.release_unused(entry);
  }
  return !taken_.empty();
}

/// Takes the held jobs that no longer wait for a staged copy, in order.
void CudaPlace::take_held() noexcept {
  std::erase_if(held_, [this](CudaJob* entry) {
    if (taken_.size() == kLookAhead || waits_for_staged_copy(*entry)) return false;
    entry->held = false;
    taken_.push_back(entry);
    return true;
  });
}

bool CudaPlace::take_one(CudaJob& entry) noexcept {
  entry.job = Job{};
  if (!feed_.next(entry.worker, entry.job)) return false;
  jobs_.insert(entry);
  taken_.push_back(&entry);
  entry.consumers = 0;
  entry.gathered = entry.staging = entry.held = false;
  try {
    entry.waits.assign(entry.job.waits.begin(), entry.job.waits.end());
  } catch (...) {
    entry.waits.clear();
    entry.outcome = failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  for (const std::uint64_t number : entry.waits) {
    if (CudaJob* const before = jobs_.find(number)) ++before->consumers;
  }
  return true;
}

void CudaPlace::start_jobs() noexcept {
  for (CudaJob* entry : taken_) start(*entry, entry == taken_.back());
  taken_.clear();
  if (context_.lost()) return;
  for (unsigned i = 0; i < fifos_.size(); ++i) {
    if (streams_->has_gathered(i) || (feed_empty_ && streams_->reached_mark(i))) mark(i);
  }
}

/// Enqueues a job in the best stream. A poisoned or failed job is appended, too, without commands,
/// so that it completes after its predecessors.
void CudaPlace::start(CudaJob& entry, bool last) noexcept {
  if (context_.lost()) {
    fail_all();
    return finish(entry, context_.lost_outcome());
  }
  if (waits_for_staged_copy(entry)) {
    entry.held = true;
    held_.push_back(&entry);
    return;
  }
  const bool poisoned = gather(entry);
  const unsigned stream_index = streams_->choose(entry.job, points_);
  keep_tail(stream_index, last);
  for (const CudaPoint& point : points_) {
    if (!streams_->order_state().implied(stream_index, point)) send(point.stream);
  }
  entry.worker.index = stream_index;
  entry.has_times = false;
  entry.enqueued_ns = entry.job.timed ? sys::now_ns() : 0;
  const CUresult code = streams_->order(stream_index, points_);
  if (code != CUDA_SUCCESS) {
    entry.outcome = to_outcome(code, name_of(entry.job));
  } else if (poisoned) {
    entry.outcome = failed_outcome(WEIR_STATUS_POISONED, "a job that it waits for has failed");
  } else if (entry.outcome.ok()) {
    enqueue(entry, stream_index);
  }
  if (!entry.staging) return append(entry, stream_index);
  entry.point = {stream_index, 0};
  staged_copies_[direction_of(entry.job)] = &entry;
}

/// Whether a job must wait for a staged copy that is not completely enqueued: until then nothing
/// may enter its streams, and its end has no epoch.
bool CudaPlace::waits_for_staged_copy(const CudaJob& entry) const noexcept {
  if (staged_copies_[0] == nullptr && staged_copies_[1] == nullptr && held_.empty()) return false;
  if (entry.job.is_copy && staged_copies_[direction_of(entry.job)] != nullptr) return true;
  return std::any_of(entry.waits.begin(), entry.waits.end(), [this](std::uint64_t number) {
    const CudaJob* const before = jobs_.find(number);
    return before != nullptr && (before->held || before->staging);
  });
}

/// Enqueues more chunks of the staged copies. Returns whether one is completely enqueued now.
bool CudaPlace::continue_copies() noexcept {
  bool moved = false;
  for (CudaJob*& copy : staged_copies_) {
    if (copy == nullptr || context_.lost()) continue;
    const unsigned stream_index = copy->point.stream;
    const CUresult code = streams_->continue_copy(*copy, stream_index);
    if (copy->staging) continue;
    CudaJob& entry = *std::exchange(copy, nullptr);
    entry.outcome = to_outcome(code, name_of(entry.job));
    entry.has_times = entry.has_times && stamp(entry.end_event, stream_index);
    append(entry, stream_index);
    moved = true;
  }
  return moved;
}

/// Appends a job to its stream FIFO, after its commands were enqueued.
void CudaPlace::append(CudaJob& entry, unsigned stream_index) noexcept {
  entry.serial = ++appended_;
  entry.point = streams_->order_state().append(stream_index);
  entry.frontier = streams_->order_state().frontier(stream_index);
  entry.next = nullptr;
  StreamFifo& fifo = fifos_[stream_index];
  (fifo.last == nullptr ? fifo.first : fifo.last->next) = &entry;
  fifo.last = &entry;
  const bool copied = entry.job.is_copy && !entry.gathered;
  if (streams_->unmarked(stream_index) >= kMarkEvery || copied) mark(stream_index);
}

/// Collects the ends of the job's predecessors. Returns whether one of them has failed.
bool CudaPlace::gather(CudaJob& entry) noexcept {
  bool poisoned = false;
  points_.clear();
  for (const std::uint64_t number : entry.waits) {
    CudaJob* const before = jobs_.find(number);
    if (before == nullptr) {
      poisoned |= failed_.any_of({&number, 1});
      continue;
    }
    --before->consumers;
    if (before->gathered) send(before->point.stream);
    poisoned |= !before->outcome.ok();
    if (points_.size() < points_.capacity()) points_.push_back(before->point);
  }
  return poisoned;
}

/// Records an event behind the last job of a stream before another job is appended, so that jobs
/// that wait for it in other streams do not wait for later jobs.
void CudaPlace::keep_tail(unsigned stream_index, bool last) noexcept {
  const CudaJob* const tail = fifos_[stream_index].last;
  if (tail == nullptr || streams_->order_state().is_complete(tail->point)) return;
  const bool follows = std::any_of(points_.begin(), points_.end(), [&](const CudaPoint& point) {
    return point.stream == stream_index && point.epoch == tail->point.epoch;
  });
  if (tail->consumers == 0 && !(follows && last && feed_empty_)) return;
  send(stream_index);
  streams_->keep_tail(stream_index);
}

/// Enqueues the gathered small copies of a stream.
void CudaPlace::send(unsigned stream_index) noexcept {
  for (CudaJob* const entry : streams_->send(stream_index)) {
    if (entry->packed == CUDA_SUCCESS) continue;
    entry->outcome = to_outcome(entry->packed, name_of(entry->job));
  }
}

/// Enqueues a mark. If that fails, watch() tries again before the thread sleeps.
void CudaPlace::mark(unsigned stream_index) noexcept {
  send(stream_index);
  const CUresult code = streams_->mark(stream_index);
  if (code != CUDA_SUCCESS) context_.note_result(code, oldest_name("a job"));
}

void CudaPlace::enqueue(CudaJob& entry, unsigned stream_index) noexcept {
  bool stamped = entry.job.timed;
  if (stamped) {
    calibrate_clock(stream_index);
    stamped = stamp(entry.start_event, stream_index);
  }
  entry.outcome = enqueue_work(entry, stream_index);
  entry.has_times = stamped && (entry.staging || stamp(entry.end_event, stream_index));
}

Outcome CudaPlace::enqueue_work(CudaJob& entry, unsigned stream_index) noexcept {
  if (entry.job.is_copy) return enqueue_copy(entry, stream_index);
  return entry.job.source != nullptr ? launch(entry.job, stream_index)
                                     : call(entry.job, stream_index);
}

Outcome CudaPlace::enqueue_copy(CudaJob& entry, unsigned stream_index) noexcept {
  try {
    return to_outcome(streams_->enqueue_copy(entry, stream_index), name_of(entry.job));
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY);
  }
}

const CudaKernels::Code& CudaPlace::code_of(const KernelSource& source) noexcept {
  auto& [known, known_code] =
      found_[reinterpret_cast<std::uintptr_t>(&source) / 64 % found_.size()];
  if (known == &source) return *known_code;
  const CudaKernels::Code& code = kernels_.find(source);
  if (!code.outcome.ok()) return code;
  known = &source;
  known_code = &code;
  return code;
}

Outcome CudaPlace::launch(const Job& job, unsigned stream_index) noexcept {
  const CudaKernels::Code& code = code_of(*job.source);
  try {
    if (!code.outcome.ok()) return code.outcome;
  } catch (...) {
    return failed_outcome(code.outcome.status, "no code");
  }
  const auto& [x, y, z] = job.groups;
  if (x == 0 || y == 0 || z == 0) return {};
  const auto& group = job.source->group;
  LaunchArguments arguments(job.source->parameters, job.call);
  if (job.source->resident) {
    const unsigned groups = std::min(x, code.at_once * partition_.processors());
    return to_outcome(CudaLibrary::get().cuLaunchCooperativeKernel(
                          code.function, groups, 1, 1, group[0], group[1], group[2], code.large,
                          streams_->stream(stream_index), arguments.addresses()),
                      name_of(job));
  }
  return to_outcome(CudaLibrary::get().cuLaunchKernel(
                        code.function, x, y, z, group[0], group[1], group[2], code.large,
                        streams_->stream(stream_index), arguments.addresses(), nullptr),
                    name_of(job));
}

Outcome CudaPlace::call(Job& job, unsigned stream_index) noexcept {
  if (job.function == nullptr) {
    return failed_outcome(WEIR_STATUS_UNSUPPORTED, "it has no code for cuda");
  }
  job.call.queue = streams_->stream(stream_index);
  return invoke(job);
}

/// Converts the result of a driver call to an outcome. A broken context is attributed to the oldest
/// job.
Outcome CudaPlace::to_outcome(CUresult code, const char* what) noexcept {
  if (code == CUDA_SUCCESS) return {};
  if (context_.note_result(code, oldest_name(what))) return context_.lost_outcome();
  return context_.failed_call(what, code);
}

const char* CudaPlace::oldest_name(const char* otherwise) const noexcept {
  const CudaJob* const entry = oldest(false);
  return entry == nullptr ? otherwise : name_of(entry->job);
}

/// Records a timing event at the end of a stream. Returns whether it succeeded.
bool CudaPlace::stamp(CudaEvent& event, unsigned stream_index) noexcept {
  try {
    if (event.get() == nullptr) event = make_cuda_event(true);
  } catch (...) {
    return false;
  }
  return reference_ && CudaLibrary::get().cuEventRecord(
                           event.get(), streams_->stream(stream_index)) == CUDA_SUCCESS;
}

/// Returns an idle stream for kernels other than `but`, the stream of the current job, which may
/// already wait for others.
std::optional<unsigned> CudaPlace::empty_stream(unsigned but) const noexcept {
  const CudaStreamOrder& order = streams_->order_state();
  for (unsigned i = 0; i < order.count() - 2 * CudaStreams::kCopyStreams; ++i) {
    if (i != but && order.tail(i) == order.done(i)) return i;
  }
  return std::nullopt;
}

/// Relates the device clock to the host clock, when an idle stream makes it cheap.
void CudaPlace::calibrate_clock(unsigned stream_index) noexcept {
  const bool idle = oldest(false) == nullptr;
  if (reference_ && (!idle || sys::now_ns() - reference_->ns < kReferenceAge)) return;
  const std::optional<unsigned> empty = idle ? 0 : empty_stream(stream_index);
  if (!empty) return;
  const CudaLibrary& cu = CudaLibrary::get();
  try {
    ClockReference fresh{.event = make_cuda_event(true)};
    const CUresult code = cu.cuEventRecord(fresh.event.get(), streams_->stream(*empty));
    if (code != CUDA_SUCCESS || cu.cuEventSynchronize(fresh.event.get()) != CUDA_SUCCESS) return;
    fresh.ns = sys::now_ns();
    reference_ = std::move(fresh);
  } catch (...) {  // without a reference, host times are used
  }
}

std::int64_t CudaPlace::time_of(const CudaEvent& event) const noexcept {
  float ms = 0;
  const CUresult code =
      CudaLibrary::get().cuEventElapsedTime(&ms, reference_->event.get(), event.get());
  return code == CUDA_SUCCESS ? reference_->ns + static_cast<std::int64_t>(1e6 * double{ms}) : 0;
}

void CudaPlace::set_times(CudaJob& entry) const noexcept {
  const std::int64_t now = sys::now_ns();
  Job& job = entry.job;
  job.started_ns = entry.enqueued_ns;
  job.ended_ns = now;
  if (!entry.has_times || !reference_ || context_.lost()) return;
  const std::int64_t began = time_of(entry.start_event), ended = time_of(entry.end_event);
  if (began == 0 || ended == 0) return;
  job.started_ns = std::clamp(began, entry.enqueued_ns, now);
  job.ended_ns = std::clamp(ended, job.started_ns, now);
}

/// Returns complete jobs to the feed, predecessors first. Returns whether there were any.
bool CudaPlace::collect() noexcept {
  if (context_.lost()) return fail_all();
  if (!read_marks()) return false;
  while (CudaJob* const entry = oldest(true)) {
    remove(*entry);
    finish(*entry, std::move(entry->outcome));
  }
  return true;
}

/// Reads the marks of all streams. The completion of a job implies that of its predecessors, even
/// if their marks were read before these changed.
bool CudaPlace::read_marks() noexcept {
  CudaStreamOrder& order = streams_->order_state();
  bool moved = false;
  for (unsigned i = 0; i < fifos_.size(); ++i) {
    const std::uint64_t seen = streams_->seen(i);
    if (seen <= order.done(i)) continue;
    moved = true;
    CudaFrontier frontier{};
    for (const CudaJob* entry = fifos_[i].first; entry != nullptr && entry->point.epoch <= seen;
         entry = entry->next) {
      frontier = entry->frontier;
    }
    for (unsigned other = 0; other < fifos_.size(); ++other) order.advance(other, frontier[other]);
    order.advance(i, seen);
  }
  return moved;
}

/// Removes the first job of a stream FIFO.
void CudaPlace::remove(const CudaJob& entry) noexcept {
  StreamFifo& fifo = fifos_[entry.point.stream];
  assert(fifo.first == &entry);
  fifo.first = entry.next;
  if (fifo.first == nullptr) fifo.last = nullptr;
}

/// The in-flight job that was appended first; with over_only, of those that are complete.
CudaJob* CudaPlace::oldest(bool over_only) const noexcept {
  CudaJob* found = nullptr;
  for (const StreamFifo& fifo : fifos_) {
    CudaJob* const first = fifo.first;
    if (first == nullptr || (over_only && !streams_->order_state().is_complete(first->point)))
      continue;
    if (found == nullptr || first->serial < found->serial) found = first;
  }
  return found;
}

void CudaPlace::finish(CudaJob& entry, Outcome outcome) noexcept {
  if (entry.job.timed) set_times(entry);
  if (held_.empty()) failed_.forget_before(entry.job.id);
  if (!outcome.ok()) failed_.add(entry.job.id);
  entry.outcome = {};
  feed_.finish(entry.worker, entry.job, std::move(outcome));
  jobs_.release(entry);
}

/// Fails all jobs of a lost context: the driver will complete none.
bool CudaPlace::fail_all() noexcept {
  const bool staging = staged_copies_[0] != nullptr || staged_copies_[1] != nullptr;
  if (oldest(false) == nullptr && !staging) return false;
  context_.wait_for_callbacks();
  streams_->forget_gathered();
  while (CudaJob* const entry = oldest(false)) {
    remove(*entry);
    finish(*entry, context_.lost_outcome());
  }
  for (CudaJob*& copy : staged_copies_) {
    if (copy != nullptr) finish(*std::exchange(copy, nullptr), context_.lost_outcome());
  }
  for (CudaJob* const entry : std::exchange(held_, {})) finish(*entry, context_.lost_outcome());
  return true;
}

bool CudaPlace::has_work() const noexcept {
  if (!jobs_.full() && feed_.has_work()) return true;
  if (jobs_.in_use() == 0) return stopping_.load(std::memory_order_seq_cst);
  if (context_.lost()) return true;
  for (unsigned i = 0; i < fifos_.size(); ++i) {
    if (streams_->seen(i) > streams_->order_state().done(i)) return true;
  }
  return false;
}

/// Polls for a while, then parks, until has_work().
void CudaPlace::idle() noexcept {
  const std::int64_t until = sys::now_ns() + spin_ns_;
  while (sys::now_ns() < until) {
    for (int i = 0; i < 32; ++i) sys::pause();
    if (has_work()) return;
  }
  watch();
  std::int64_t deadline = sys::kNever;
  if (jobs_.in_use() > 0) {
    deadline = sys::now_ns() + park_ns_;
    park_ns_ = std::clamp(2 * park_ns_, kMinParkNs, kMaxParkNs);
  }
  bell_.park(deadline, [this] { return has_work(); });
}

/// Before parking with jobs in flight: checks for a lost context, and requests notifications.
void CudaPlace::watch() noexcept {
  const CudaStreamOrder& order = streams_->order_state();
  for (unsigned i = 0; i < fifos_.size() && !context_.lost(); ++i) {
    if (order.tail(i) == order.done(i)) continue;
    mark(i);
    if (context_.note_result(streams_->query(i), oldest_name("a job"))) return;
    streams_->notify_after(i);
  }
}

}  // namespace weir::rt
