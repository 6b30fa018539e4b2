#include "backends/cuda/cuda_place.hpp"

#include <algorithm>
#include <utility>

#include "backend/invoke.hpp"
#include "backend/launch_arguments.hpp"
#include "base/config.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

namespace {

/// So many jobs are with the driver at most: it blocks those who give it thousands.
constexpr std::size_t kWindow = 256;
/// So many are taken before the first of them is enqueued, to see which have several followers.
constexpr std::size_t kLookAhead = 16;
static_assert(kLookAhead <= CudaQueues::kGathered, "all that are taken may be small copies");
/// The device marks its progress in a lane after so many jobs, and when there are no more after
/// the last one if it has come to the mark before.
constexpr std::uint64_t kMarkEvery = 16;

/// Of the lanes for copies.
unsigned direction_of(const Job& job) noexcept { return job.from.device == nullptr ? 0 : 1; }

constexpr std::int64_t kShortestNap = 1'000'000, kLongestNap = 20'000'000;
/// Times relative to an older event lose microseconds.
constexpr std::int64_t kReferenceAge = 8'000'000'000;

const char* name_of(const Job& job) noexcept {
  if (job.call.name != nullptr) return job.call.name;
  return job.copies ? "copy" : "kernel";
}

}  // namespace

CudaPlace::CudaPlace(const std::string& name, CudaContext& context, const CudaMemory& memory,
                     CudaKernels& kernels, std::vector<CUdevResource> part, unsigned lanes,
                     PlaceFeed& feed)
    : context_(context),
      kernels_(kernels),
      feed_(feed),
      spin_ns_(config::spin_ns()),
      partition_(name, context, std::move(part)),
      flights_(kWindow),
      failed_(kWindow) {
  taken_.reserve(kLookAhead);
  held_.reserve(kWindow);
  points_.reserve(kWindow);
  {
    const CudaScope scope(partition_.context());  // one thread at a time may be in a green context
    queues_.emplace(context, memory, partition_, lanes, bell_);
  }
  try {
    trains_.resize(queues_->lanes().count());
    thread_.emplace(name, [this] { serve(); });
  } catch (...) {
    release_queues();
    throw;
  }
}

CudaPlace::~CudaPlace() {
  stopping_.store(true, std::memory_order_seq_cst);
  bell_.ring();
  thread_.reset();  // what libraries keep for its streams goes first
  release_queues();
}

/// Page-locked memory is freed in a context only.
void CudaPlace::release_queues() noexcept {
  try {
    const CudaScope scope(partition_.context());
    queues_.reset();
  } catch (...) {  // a context that is lost: they are gone with it
  }
}

void CudaPlace::serve() noexcept {
  const NoWaitScope no_wait;
  CudaLibrary::get().cuCtxSetCurrent(partition_.context());
  for (;;) {
    bool moved = collect();
    moved |= go_on();
    moved |= take_jobs();
    start_jobs();
    if (moved) {
      nap_ns_ = kShortestNap;
    } else if (stopping_.load(std::memory_order_relaxed) && flights_.in_use() == 0) {
      break;
    } else {
      idle();
    }
  }
  queues_->drain();
  reference_.reset();  // while the context is the thread's
}

bool CudaPlace::take_jobs() noexcept {
  dry_ = false;
  take_held();
  while (!dry_ && taken_.size() < kLookAhead && !flights_.full()) {
    CudaFlight& flight = *flights_.take();
    dry_ = !take_one(flight);
    if (dry_) flights_.give_unused(flight);
  }
  return !taken_.empty();
}

/// Those that were held back and need not be any more, in their order.
void CudaPlace::take_held() noexcept {
  std::erase_if(held_, [this](CudaFlight* flight) {
    if (taken_.size() == kLookAhead || waits_for_haul(*flight)) return false;
    flight->held = false;
    taken_.push_back(flight);
    return true;
  });
}

bool CudaPlace::take_one(CudaFlight& flight) noexcept {
  flight.job = Job{};
  if (!feed_.next(flight.worker, flight.job)) return false;
  flights_.enter(flight);
  taken_.push_back(&flight);
  flight.consumers = 0;
  flight.gathered = flight.hauling = flight.held = false;
  try {
    flight.waits.assign(flight.job.waits.begin(), flight.job.waits.end());
  } catch (...) {
    flight.waits.clear();
    flight.outcome = failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "out of memory");
  }
  for (const std::uint64_t number : flight.waits) {
    if (CudaFlight* const before = flights_.find(number)) ++before->consumers;
  }
  return true;
}

void CudaPlace::start_jobs() noexcept {
  for (CudaFlight* flight : taken_) start(*flight, flight == taken_.back());
  taken_.clear();
  if (context_.lost()) return;
  for (unsigned lane = 0; lane < trains_.size(); ++lane) {
    if (queues_->has_gathered(lane) || (dry_ && queues_->answered(lane))) mark(lane);
  }
}

/// Enqueues a job in the lane that suits it. One that must not run gets its place there, too: it is
/// over after those that it waits for.
void CudaPlace::start(CudaFlight& flight, bool last) noexcept {
  if (context_.lost()) {
    fail_all();
    return finish(flight, context_.loss());
  }
  if (waits_for_haul(flight)) {
    flight.held = true;
    held_.push_back(&flight);
    return;
  }
  const bool poisoned = gather(flight);
  const unsigned lane = queues_->choose(flight.job, points_);
  keep_tail(lane, last);
  for (const CudaPoint& point : points_) {
    if (!queues_->lanes().implied(lane, point)) send(point.lane);
  }
  flight.worker.index = lane;
  flight.stamped = false;
  flight.enqueued_ns = flight.job.timed ? sys::now_ns() : 0;
  const CUresult code = queues_->order(lane, points_);
  if (code != CUDA_SUCCESS) {
    flight.outcome = judge(code, name_of(flight.job));
  } else if (poisoned) {
    flight.outcome = failed_outcome(WEIR_STATUS_POISONED, "a job that it waits for has failed");
  } else if (flight.outcome.ok()) {
    enqueue(flight, lane);
  }
  if (!flight.hauling) return append(flight, lane);
  flight.point = {lane, 0};
  hauls_[direction_of(flight.job)] = &flight;
}

/// Whether a job has to wait for a copy of which the driver does not have all: nothing comes into
/// its lanes meanwhile, and its end is not known.
bool CudaPlace::waits_for_haul(const CudaFlight& flight) const noexcept {
  if (hauls_[0] == nullptr && hauls_[1] == nullptr && held_.empty()) return false;
  if (flight.job.copies && hauls_[direction_of(flight.job)] != nullptr) return true;
  return std::any_of(flight.waits.begin(), flight.waits.end(), [this](std::uint64_t number) {
    const CudaFlight* const before = flights_.find(number);
    return before != nullptr && (before->held || before->hauling);
  });
}

/// Gives the driver more of the copies that it does not have all of. Returns whether it has all of
/// one now.
bool CudaPlace::go_on() noexcept {
  bool moved = false;
  for (CudaFlight*& haul : hauls_) {
    if (haul == nullptr || context_.lost()) continue;
    const unsigned lane = haul->point.lane;
    const CUresult code = queues_->go_on(*haul, lane);
    if (haul->hauling) continue;
    CudaFlight& flight = *std::exchange(haul, nullptr);
    flight.outcome = judge(code, name_of(flight.job));
    flight.stamped = flight.stamped && stamp(flight.ended, lane);
    append(flight, lane);
    moved = true;
  }
  return moved;
}

/// What there is of the job is at the end of a lane.
void CudaPlace::append(CudaFlight& flight, unsigned lane) noexcept {
  flight.serial = ++appended_;
  flight.point = queues_->lanes().append(lane);
  flight.frontier = queues_->lanes().frontier(lane);
  flight.next = nullptr;
  Train& train = trains_[lane];
  (train.last == nullptr ? train.first : train.last->next) = &flight;
  train.last = &flight;
  const bool copied = flight.job.copies && !flight.gathered;
  if (queues_->unmarked(lane) >= kMarkEvery || copied) mark(lane);
}

/// Collects the ends of the job's predecessors. Returns whether one of them has failed.
bool CudaPlace::gather(CudaFlight& flight) noexcept {
  bool poisoned = false;
  points_.clear();
  for (const std::uint64_t number : flight.waits) {
    CudaFlight* const before = flights_.find(number);
    if (before == nullptr) {
      poisoned |= failed_.any_of({&number, 1});
      continue;
    }
    --before->consumers;
    if (before->gathered) send(before->point.lane);
    poisoned |= !before->outcome.ok();
    if (points_.size() < points_.capacity()) points_.push_back(before->point);
  }
  return poisoned;
}

/// Before something is appended to a lane: what will wait for its last job must not wait for more.
void CudaPlace::keep_tail(unsigned lane, bool last) noexcept {
  const CudaFlight* const tail = trains_[lane].last;
  if (tail == nullptr || queues_->lanes().over(tail->point)) return;
  const bool follows = std::any_of(points_.begin(), points_.end(), [&](const CudaPoint& point) {
    return point.lane == lane && point.epoch == tail->point.epoch;
  });
  if (tail->consumers == 0 && !(follows && last && dry_)) return;
  send(lane);
  queues_->keep_tail(lane);
}

/// The small copies of a lane that wait for others to come.
void CudaPlace::send(unsigned lane) noexcept {
  for (CudaFlight* const flight : queues_->send(lane)) {
    if (flight->packed == CUDA_SUCCESS) continue;
    flight->outcome = judge(flight->packed, name_of(flight->job));
  }
}

/// A mark that fails is tried again before the thread sleeps.
void CudaPlace::mark(unsigned lane) noexcept {
  send(lane);
  const CUresult code = queues_->mark(lane);
  if (code != CUDA_SUCCESS) context_.note(code, oldest_name("a job"));
}

void CudaPlace::enqueue(CudaFlight& flight, unsigned lane) noexcept {
  bool stamped = flight.job.timed;
  if (stamped) {
    refer(lane);
    stamped = stamp(flight.began, lane);
  }
  flight.outcome = enqueue_work(flight, lane);
  flight.stamped = stamped && (flight.hauling || stamp(flight.ended, lane));
}

Outcome CudaPlace::enqueue_work(CudaFlight& flight, unsigned lane) noexcept {
  if (flight.job.copies) return enqueue_copy(flight, lane);
  return flight.job.source != nullptr ? launch(flight.job, lane) : call(flight.job, lane);
}

Outcome CudaPlace::enqueue_copy(CudaFlight& flight, unsigned lane) noexcept {
  try {
    return judge(queues_->enqueue_copy(flight, lane), name_of(flight.job));
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

Outcome CudaPlace::launch(const Job& job, unsigned lane) noexcept {
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
    return judge(CudaLibrary::get().cuLaunchCooperativeKernel(
                     code.function, groups, 1, 1, group[0], group[1], group[2], code.large,
                     queues_->stream(lane), arguments.addresses()),
                 name_of(job));
  }
  return judge(CudaLibrary::get().cuLaunchKernel(code.function, x, y, z, group[0], group[1],
                                                 group[2], code.large, queues_->stream(lane),
                                                 arguments.addresses(), nullptr),
               name_of(job));
}

Outcome CudaPlace::call(Job& job, unsigned lane) noexcept {
  if (job.function == nullptr) {
    return failed_outcome(WEIR_STATUS_UNSUPPORTED, "it has no code for cuda");
  }
  job.call.queue = queues_->stream(lane);
  return invoke(job);
}

/// How an action goes on whose call gave this. What breaks the context is the oldest job's doing.
Outcome CudaPlace::judge(CUresult code, const char* what) noexcept {
  if (code == CUDA_SUCCESS) return {};
  if (context_.note(code, oldest_name(what))) return context_.loss();
  return context_.failure(what, code);
}

const char* CudaPlace::oldest_name(const char* otherwise) const noexcept {
  const CudaFlight* const flight = oldest(false);
  return flight == nullptr ? otherwise : name_of(flight->job);
}

/// Records an event with a time at the end of a lane. Returns whether that worked.
bool CudaPlace::stamp(CudaEvent& event, unsigned lane) noexcept {
  try {
    if (event.get() == nullptr) event = make_cuda_event(true);
  } catch (...) {
    return false;
  }
  return reference_ &&
         CudaLibrary::get().cuEventRecord(event.get(), queues_->stream(lane)) == CUDA_SUCCESS;
}

/// Returns a lane for kernels in which nothing is under way: that of the job at hand may wait for
/// others already.
std::optional<unsigned> CudaPlace::empty_lane(unsigned but) const noexcept {
  const CudaLanes& lanes = queues_->lanes();
  for (unsigned lane = 0; lane < lanes.count() - 2 * CudaQueues::kCopyLanes; ++lane) {
    if (lane != but && lanes.tail(lane) == lanes.done(lane)) return lane;
  }
  return std::nullopt;
}

/// Compares the clocks, when there is nothing that it would wait for.
void CudaPlace::refer(unsigned lane) noexcept {
  const bool idle = oldest(false) == nullptr;
  if (reference_ && (!idle || sys::now_ns() - reference_->ns < kReferenceAge)) return;
  const std::optional<unsigned> empty = idle ? 0 : empty_lane(lane);
  if (!empty) return;
  const CudaLibrary& cu = CudaLibrary::get();
  try {
    Reference fresh{.event = make_cuda_event(true)};
    const CUresult code = cu.cuEventRecord(fresh.event.get(), queues_->stream(*empty));
    if (code != CUDA_SUCCESS || cu.cuEventSynchronize(fresh.event.get()) != CUDA_SUCCESS) return;
    fresh.ns = sys::now_ns();
    reference_ = std::move(fresh);
  } catch (...) {  // without one there are the times of the host
  }
}

std::int64_t CudaPlace::time_of(const CudaEvent& event) const noexcept {
  float ms = 0;
  const CUresult code =
      CudaLibrary::get().cuEventElapsedTime(&ms, reference_->event.get(), event.get());
  return code == CUDA_SUCCESS ? reference_->ns + static_cast<std::int64_t>(1e6 * double{ms}) : 0;
}

void CudaPlace::set_times(CudaFlight& flight) const noexcept {
  const std::int64_t now = sys::now_ns();
  Job& job = flight.job;
  job.started_ns = flight.enqueued_ns;
  job.ended_ns = now;
  if (!flight.stamped || !reference_ || context_.lost()) return;
  const std::int64_t began = time_of(flight.began), ended = time_of(flight.ended);
  if (began == 0 || ended == 0) return;
  job.started_ns = std::clamp(began, flight.enqueued_ns, now);
  job.ended_ns = std::clamp(ended, job.started_ns, now);
}

/// Hands back what is over, predecessors first. Returns whether there was any.
bool CudaPlace::collect() noexcept {
  if (context_.lost()) return fail_all();
  if (!read_marks()) return false;
  while (CudaFlight* const flight = oldest(true)) {
    Train& train = trains_[flight->point.lane];
    train.first = flight->next;
    if (train.first == nullptr) train.last = nullptr;
    finish(*flight, std::move(flight->outcome));
  }
  return true;
}

/// Sees how far the lanes are. What is over shows that all it waited for is, although the mark of
/// that may have been looked at before.
bool CudaPlace::read_marks() noexcept {
  CudaLanes& lanes = queues_->lanes();
  bool moved = false;
  for (unsigned lane = 0; lane < trains_.size(); ++lane) {
    const std::uint64_t seen = queues_->seen(lane);
    if (seen <= lanes.done(lane)) continue;
    moved = true;
    CudaFrontier frontier{};
    for (CudaFlight* flight = trains_[lane].first; flight != nullptr && flight->point.epoch <= seen;
         flight = flight->next) {
      frontier = flight->frontier;
    }
    for (unsigned other = 0; other < trains_.size(); ++other) lanes.advance(other, frontier[other]);
    lanes.advance(lane, seen);
  }
  return moved;
}

/// The job that was enqueued first, of those that are over if so wanted.
CudaFlight* CudaPlace::oldest(bool over_only) const noexcept {
  CudaFlight* found = nullptr;
  for (const Train& train : trains_) {
    CudaFlight* const first = train.first;
    if (first == nullptr || (over_only && !queues_->lanes().over(first->point))) continue;
    if (found == nullptr || first->serial < found->serial) found = first;
  }
  return found;
}

void CudaPlace::finish(CudaFlight& flight, Outcome outcome) noexcept {
  if (flight.job.timed) set_times(flight);
  if (held_.empty()) failed_.forget_before(flight.job.number);
  if (!outcome.ok()) failed_.add(flight.job.number);
  flight.outcome = {};
  feed_.finish(flight.worker, flight.job, std::move(outcome));
  flights_.give(flight);
}

/// The context is lost: the driver will bring nothing to an end.
bool CudaPlace::fail_all() noexcept {
  const bool hauls = hauls_[0] != nullptr || hauls_[1] != nullptr;
  if (oldest(false) == nullptr && !hauls) return false;
  context_.await_leavers();
  queues_->forget_gathered();
  while (CudaFlight* const flight = oldest(false)) {
    Train& train = trains_[flight->point.lane];
    train.first = flight->next;
    if (train.first == nullptr) train.last = nullptr;
    finish(*flight, context_.loss());
  }
  for (CudaFlight*& haul : hauls_) {
    if (haul != nullptr) finish(*std::exchange(haul, nullptr), context_.loss());
  }
  for (CudaFlight* const flight : std::exchange(held_, {})) finish(*flight, context_.loss());
  return true;
}

bool CudaPlace::stirring() const noexcept {
  if (!flights_.full() && feed_.has_work()) return true;
  if (flights_.in_use() == 0) return stopping_.load(std::memory_order_seq_cst);
  if (context_.lost()) return true;
  for (unsigned lane = 0; lane < trains_.size(); ++lane) {
    if (queues_->seen(lane) > queues_->lanes().done(lane)) return true;
  }
  return false;
}

/// Polls for a while, then sleeps, until something stirs.
void CudaPlace::idle() noexcept {
  const std::int64_t until = sys::now_ns() + spin_ns_;
  while (sys::now_ns() < until) {
    for (int i = 0; i < 32; ++i) sys::pause();
    if (stirring()) return;
  }
  watch();
  std::int64_t deadline = sys::kNever;
  if (flights_.in_use() > 0) {
    deadline = sys::now_ns() + nap_ns_;
    nap_ns_ = std::clamp(2 * nap_ns_, kShortestNap, kLongestNap);
  }
  bell_.sleep(deadline, [this] { return stirring(); });
}

/// Before sleeping on jobs: has the device broken, and who wakes this thread?
void CudaPlace::watch() noexcept {
  for (unsigned lane = 0; lane < trains_.size() && !context_.lost(); ++lane) {
    if (queues_->lanes().tail(lane) == queues_->lanes().done(lane)) continue;
    mark(lane);
    if (context_.note(queues_->query(lane), oldest_name("a job"))) return;
    queues_->ring_after(lane);
  }
}

}  // namespace weir::rt
