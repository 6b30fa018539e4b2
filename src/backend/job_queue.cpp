#include "backend/job_queue.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

namespace weir::rt {

void JobQueue::ReadyJobs::add(const Job& job) noexcept {
  const std::uint64_t behind = Job::kPriorities - 1 - job.priority;
  heap_.push_back(behind << kNumberBits | job.id);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::uint64_t JobQueue::ReadyJobs::take_first() noexcept {
  const std::uint64_t number = first();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
  return number;
}

JobQueue::JobQueue(PlaceFeed& feed) : feed_(feed) {
  for (Numbers* const list : {&ended_, &taken_}) list->reserve(kWindow);
  for (std::uint64_t id = 0; id < kWindow; ++id) jobs_.slot_of(id).dependents.reserve(kWindow);
}

void JobQueue::wait_for_callers() const noexcept {
  while (callers_.load(std::memory_order_acquire) > 0) sys::yield();
}

bool JobQueue::needs_serving() const noexcept {
  return to_serve_.load(std::memory_order_seq_cst) > 0 || (!jobs_.full() && feed_.has_work());
}

bool JobQueue::has_work() const noexcept { return to_run_.load(std::memory_order_seq_cst) > 0; }

bool JobQueue::next(Worker& worker, Job& job) noexcept {
  {
    const sys::Lock lock(mutex_);
    if (calls_.empty()) return false;
    PendingJob& slot = jobs_.slot_of(calls_.take_first());
    to_run_.fetch_sub(1, std::memory_order_seq_cst);
    worker.current = &slot;
    job = slot.job;
    job.id = ++handed_out_;  // also for cores that count
    job.waits = {};
  }
  if (has_work()) cores_->wake();
  return true;
}

void JobQueue::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  PendingJob& slot = *static_cast<PendingJob*>(std::exchange(worker.current, nullptr));
  slot.worker.index = worker.index;
  slot.job.started_ns = job.started_ns;
  slot.job.ended_ns = job.ended_ns;
  record_end(slot, std::move(outcome), true);
}

void JobQueue::copied(void* token, Outcome outcome, std::int64_t started_ns,
                      std::int64_t ended_ns) noexcept {
  PendingJob& slot = *static_cast<PendingJob*>(token);
  slot.job.started_ns = started_ns;
  slot.job.ended_ns = ended_ns;
  record_end(slot, std::move(outcome), false);
}

/// Once a job is seen to be complete, the place may be destroyed. A core that completes one takes
/// the next.
void JobQueue::record_end(PendingJob& slot, Outcome outcome, bool by_core) noexcept {
  callers_.fetch_add(1, std::memory_order_relaxed);
  bool soon = false;
  {
    const sys::Lock lock(mutex_);
    end(slot, std::move(outcome));
    soon = by_core && more_soon();
  }
  if (has_work()) cores_->wake();
  notify(soon);
  callers_.fetch_sub(1, std::memory_order_release);
}

/// Whether a core that takes the next job will complete it soon.
bool JobQueue::more_soon() const noexcept {
  return !calls_.empty() && copies_.empty() && ended_.size() < kMaxReportedAtOnce &&
         jobs_.slot_of(calls_.first()).job.brief;
}

bool JobQueue::serve() noexcept {
  bool moved = return_ended();
  while (take_jobs()) moved = true;
  if (has_work()) cores_->wake();
  moved |= start_copy();
  return moved;
}

bool JobQueue::return_ended() noexcept {
  {
    const sys::Lock lock(mutex_);
    std::swap(taken_, ended_);
    to_serve_.fetch_sub(taken_.size(), std::memory_order_seq_cst);
  }
  const bool any = !taken_.empty();
  for (const std::uint64_t number : taken_) {
    PendingJob& slot = jobs_.slot_of(number);
    feed_.finish(slot.worker, slot.job, std::exchange(slot.outcome, {}));
    jobs_.remove(slot);
  }
  taken_.clear();
  failed_.forget_before(jobs_.first());
  return any;
}

/// Starts at most one copy: while it starts, more urgent ones may become ready.
bool JobQueue::start_copy() noexcept {
  std::uint64_t number = 0;
  {
    const sys::Lock lock(mutex_);
    if (copies_.empty()) return false;
    number = copies_.take_first();
    to_serve_.fetch_sub(1, std::memory_order_seq_cst);
  }
  PendingJob& slot = jobs_.slot_of(number);
  copy({.source = slot.job.from, .target = slot.job.to, .sink = this, .token = &slot});
  return true;
}

/// Takes a job from the feed. Returns false if there is none, or no room.
bool JobQueue::take_jobs() noexcept {
  if (jobs_.full()) return false;
  PendingJob& slot = jobs_.free_slot();
  if (!feed_.next(slot.worker, slot.job)) return false;
  jobs_.add();
  const sys::Lock lock(mutex_);
  admit(slot);
  return true;
}

void JobQueue::admit(PendingJob& slot) noexcept {
  slot.complete = false;
  slot.poisoned = failed_.any_of(slot.job.waits);
  slot.unmet = 0;
  slot.dependents.clear();
  for (const std::uint64_t earlier : slot.job.waits) {
    PendingJob* const other = jobs_.find(earlier);
    if (other == nullptr || other->complete) continue;
    if (!other->dependents.empty() && other->dependents.back() == slot.job.id) continue;
    other->dependents.push_back(slot.job.id);
    ++slot.unmet;
  }
  if (slot.unmet == 0) make_ready(slot);
}

void JobQueue::make_ready(PendingJob& slot) noexcept {
  if (slot.poisoned) return end(slot, {WEIR_STATUS_POISONED, {}});
  const bool copies = slot.job.is_copy;
  (copies ? copies_ : calls_).add(slot.job);
  (copies ? to_serve_ : to_run_).fetch_add(1, std::memory_order_seq_cst);
}

void JobQueue::end(PendingJob& slot, Outcome outcome) noexcept {
  assert(!slot.complete && slot.unmet == 0);  // exactly once
  const bool failed = !outcome.ok();
  if (failed) failed_.add(slot.job.id);
  slot.outcome = std::move(outcome);
  slot.complete = true;
  ended_.push_back(slot.job.id);
  to_serve_.fetch_add(1, std::memory_order_seq_cst);
  for (const std::uint64_t number : slot.dependents) {
    PendingJob& dependent = jobs_.slot_of(number);
    dependent.poisoned = dependent.poisoned || failed;
    assert(dependent.unmet > 0);
    if (--dependent.unmet == 0) make_ready(dependent);
  }
}

}  // namespace weir::rt
