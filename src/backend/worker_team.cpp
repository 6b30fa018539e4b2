#include "backend/worker_team.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/invoke.hpp"
#include "base/config.hpp"
#include "base/error.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"

namespace weir::rt {

namespace {

/// Sets OpenMP's thread count for regions started by this thread, if the program has an OpenMP.
bool set_openmp_threads(std::size_t count) noexcept {
  using SetThreads = void (*)(int);
  static sys::Atomic<SetThreads> cached{nullptr};
  SetThreads set = cached.load(std::memory_order_relaxed);
  if (set == nullptr) {
    set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (set == nullptr) return false;
    cached.store(set, std::memory_order_relaxed);
  }
  set(static_cast<int>(count));
  return true;
}

constexpr std::size_t kLeader = 0;

/// Unwinds a member out of a barrier after another member threw.
struct GangBroken final : std::exception {
  const char* what() const noexcept override { return "another member of the team failed"; }
};

struct Duty {
  TeamPart part = TeamPart::none;
  std::size_t member = 0;
};
constinit thread_local Duty duty;

}  // namespace

WorkerTeam::WorkerTeam(WorkerTeamOptions options, PlaceFeed& feed)
    : options_(std::move(options)), feed_(feed), spin_ns_(config::spin_ns()) {
  const std::size_t count = options_.processors.size();
  workers_.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<Member>());
    workers_.back()->worker.index = i;
    workers_.back()->worker.may_call = options_.feed_calls;
    workers_.back()->processor = {options_.processors[i]};
  }
  try {
    for (auto& slot : workers_) {
      Member* const own = slot.get();
      slot->thread.emplace(fmt::format("{}.{}", options_.name, own->worker.index),
                           [this, own] { work(*own); });
    }
  } catch (...) {
    stopping_.store(true, std::memory_order_seq_cst);
    parking_.unpark_all();
    workers_.clear();
    throw;
  }
}

WorkerTeam::~WorkerTeam() {
  stopping_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  for (auto& slot : workers_) slot->thread.reset();
}

void WorkerTeam::work(Member& slot) {
  const NoWaitScope no_wait;
  bind(slot.worker);
  set_openmp_threads(1);
  Job job;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (gang_called_.load(std::memory_order_acquire)) {
      join_gang(slot.worker);
    } else if (feed_.next(slot.worker, job)) {
      execute(slot.worker, job);
    } else {
      idle();
    }
  }
}

void WorkerTeam::execute(Worker& worker, Job& job) {
  if (job.parallel) {
    feed_.finish(worker, job, run_parallel(worker, job));
  } else if (job.timed || options_.speed < 1 || options_.stand_in) {
    feed_.finish(worker, job, run_timed(job));
  } else {
    feed_.finish(worker, job, invoke(job));
  }
}

Outcome WorkerTeam::run_timed(Job& job) const {
  job.started_ns = sys::now_ns();
  Outcome outcome =
      options_.stand_in ? options_.stand_in(job, job.parallel ? size() : 1) : invoke(job);
  job.ended_ns = sys::now_ns();
  if (options_.speed < 1) {
    const auto taken = static_cast<double>(job.ended_ns - job.started_ns);
    job.ended_ns = job.started_ns + static_cast<std::int64_t>(taken / options_.speed);
    sys::sleep_until(job.ended_ns);
  }
  return outcome;
}

void WorkerTeam::bind(const Worker& worker) const noexcept {
  if (options_.pin) sys::bind_this_thread(workers_[worker.index]->processor);
}

bool WorkerTeam::has_work() const noexcept {
  return feed_.has_work() || gang_called_.load(std::memory_order_seq_cst) ||
         stopping_.load(std::memory_order_seq_cst);
}

void WorkerTeam::idle() noexcept {
  constexpr long long kBusyCoreNs = 5'000;
  constexpr int kPausesPerPoll = sys::scaled(32, 1);
  const std::int64_t start = sys::now_ns();
  std::int64_t now = start;
  while (now - start < spin_ns_) {
    for (int i = 0; i < kPausesPerPoll; ++i) {
      if (has_work()) return;
      feed_.poll();
      sys::pause();
    }
    const std::int64_t before = sys::now_ns();
    sys::yield();
    now = sys::now_ns();
    if (now - before > kBusyCoreNs) break;  // another thread needs this core
  }
  parking_.prepare();
  feed_.about_to_block();
  if (has_work()) {
    parking_.cancel();
  } else {
    parking_.park();
  }
}

Outcome WorkerTeam::run_parallel(Worker& worker, Job& job) {
  while (gang_taken_.exchange(true, std::memory_order_acquire)) join_gang(worker);
  assert(!gang_called_.load(std::memory_order_relaxed) &&
         gang_present_.load(std::memory_order_relaxed) == 0);  // one team kernel at a time
  Outcome outcome;
  gang_job_ = &job;
  gang_outcome_ = &outcome;
  gang_over_ = false;
  broken_.store(false, std::memory_order_relaxed);
  gang_called_.store(true, std::memory_order_seq_cst);
  parking_.unpark_all();
  join_gang(worker);
  return outcome;
}

/// Calls the kernel when all other members have arrived, and releases them afterwards.
void WorkerTeam::lead() {
  wait_until(gang_present_, static_cast<std::uint32_t>(size() - 1));
  if (set_openmp_threads(size()) && options_.pin) sys::bind_this_thread(options_.processors);
  Job* const job = gang_job_;
  Outcome* const outcome = gang_outcome_;
  job->call.team = this;
  *outcome = run_timed(*job);
  if (set_openmp_threads(1)) bind(workers_[kLeader]->worker);
  gang_called_.store(false, std::memory_order_seq_cst);
  gang_over_ = true;
  change(gang_task_, 1);
  wait_until(gang_present_, 0);
  gang_taken_.store(false, std::memory_order_release);
}

void WorkerTeam::join_gang(const Worker& worker) {
  if (!gang_called_.load(std::memory_order_acquire)) {
    sys::yield();
    return;
  }
  if (worker.index == kLeader) return lead();
  std::uint32_t seen = gang_task_.load(std::memory_order_acquire);
  change(gang_present_, 1);
  for (;;) {
    wait_while(gang_task_, seen);
    ++seen;
    if (gang_over_) break;
    take_part(worker.index);
  }
  change(gang_present_, static_cast<std::uint32_t>(-1));
}

void WorkerTeam::perform(std::size_t member) {
  duty = {task_.function != nullptr ? TeamPart::function : TeamPart::loop, member};
  if (task_.function != nullptr) {
    task_.function(this, member, task_.payload);
    return;
  }
  const auto claim = [this] { return task_.next.fetch_add(1, std::memory_order_relaxed); };
  for (std::size_t chunk = claim(); chunk < task_.chunks; chunk = claim()) {
    const std::size_t begin = chunk * task_.chunk;
    const std::size_t indices = std::min<std::size_t>(task_.chunk, task_.count - begin);
    task_.body(begin, begin + indices, member, task_.payload);
  }
}

void WorkerTeam::take_part(std::size_t member) noexcept {
  try {
    perform(member);
  } catch (const GangBroken&) {
  } catch (...) {
    if (!thrown_taken_.exchange(true, std::memory_order_acq_rel)) {
      thrown_ = std::current_exception();
    }
    broken_.store(true, std::memory_order_seq_cst);
    change(barrier_phase_, 1);
  }
  duty = {};
  change(task_.running, static_cast<std::uint32_t>(-1));
}

void WorkerTeam::for_each(std::size_t count, std::size_t grain, weir_team_body body,
                          void* payload) {
  if (duty.part != TeamPart::none) {
    if (count > 0) body(0, count, duty.member, payload);
    return;
  }
  task_.body = body;
  task_.function = nullptr;
  task_.payload = payload;
  task_.count = count;
  task_.chunk = std::max<std::size_t>({1, grain, count / (4 * size())});
  task_.chunks = count / task_.chunk + (count % task_.chunk != 0 ? 1 : 0);
  run_task();
}

void WorkerTeam::run(weir_team_function function, void* payload) {
  check_team_run(duty.part);
  task_.function = function;
  task_.payload = payload;
  run_task();
}

void WorkerTeam::run_task() {
  assert(gang_called_.load(std::memory_order_relaxed) &&
         task_.running.load(std::memory_order_relaxed) == 0);  // only the leader's kernel calls it
  task_.next.store(0, std::memory_order_relaxed);
  task_.running.store(static_cast<std::uint32_t>(size()), std::memory_order_relaxed);
  thrown_taken_.store(false, std::memory_order_relaxed);
  broken_.store(false, std::memory_order_relaxed);
  barrier_waiting_.store(0, std::memory_order_relaxed);
  change(gang_task_, 1);
  take_part(kLeader);
  wait_until(task_.running, 0);
  if (thrown_taken_.load(std::memory_order_acquire)) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

void WorkerTeam::barrier() {
  check_team_barrier(duty.part);
  const std::uint32_t phase = barrier_phase_.load(std::memory_order_acquire);
  if (barrier_waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
    barrier_waiting_.store(0, std::memory_order_relaxed);
    change(barrier_phase_, 1);
    return;
  }
  if (!broken_.load(std::memory_order_seq_cst)) wait_while(barrier_phase_, phase);
  if (broken_.load(std::memory_order_seq_cst)) throw GangBroken();
}

/// Polls, then sleeps, while word == value.
void WorkerTeam::wait_while(const sys::Atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  constexpr int kPolls = sys::scaled(64, 1);
  const std::int64_t start = sys::now_ns();
  do {
    for (int i = 0; i < kPolls; ++i) {
      if (word.load(std::memory_order_acquire) != value) return;
      sys::pause();
    }
    sys::yield();
  } while (sys::now_ns() - start < spin_ns_);
  while (word.load(std::memory_order_acquire) == value) sys::wait(word, value);
}

void WorkerTeam::wait_until(const sys::Atomic<std::uint32_t>& word, std::uint32_t wanted) noexcept {
  for (std::uint32_t value = word.load(std::memory_order_acquire); value != wanted;
       value = word.load(std::memory_order_acquire)) {
    wait_while(word, value);
  }
}

void WorkerTeam::change(sys::Atomic<std::uint32_t>& word, std::uint32_t by) noexcept {
  word.fetch_add(by, std::memory_order_acq_rel);
  sys::wake_all(word);
}

}  // namespace weir::rt
