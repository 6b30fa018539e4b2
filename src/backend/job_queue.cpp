#include "backend/job_queue.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace weir::rt {

void JobQueue::ReadyJobs::add(const Job& job) noexcept {
  const std::uint64_t behind = Job::kUrgencies - 1 - job.urgency;
  heap_.push_back(behind << kNumberBits | job.number);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::uint64_t JobQueue::ReadyJobs::take_first() noexcept {
  const std::uint64_t number = first();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
  return number;
}

JobQueue::JobQueue(PlaceFeed& feed) : feed_(feed), slots_(kWindow) {
  for (Numbers* const list : {&ended_, &taken_}) list->reserve(kWindow);
  for (Slot& slot : slots_) slot.dependents.reserve(kWindow);
}

void JobQueue::outlast_callers() const noexcept {
  while (callers_.load(std::memory_order_acquire) > 0) sys::yield();
}

bool JobQueue::stirring() const noexcept {
  return to_serve_.load(std::memory_order_seq_cst) > 0 ||
         (next_ - first_ < kWindow && feed_.has_work());
}

bool JobQueue::has_work() const noexcept { return to_run_.load(std::memory_order_seq_cst) > 0; }

bool JobQueue::next(Worker& worker, Job& job) noexcept {
  {
    const sys::Lock lock(mutex_);
    if (calls_.empty()) return false;
    Slot& slot = slot_of(calls_.take_first());
    to_run_.fetch_sub(1, std::memory_order_seq_cst);
    worker.current = &slot;
    job = slot.job;
    job.number = ++handed_out_;  // for cores that count, too
    job.waits = {};
  }
  if (has_work()) cores_->wake();
  return true;
}

void JobQueue::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  Slot& slot = *static_cast<Slot*>(std::exchange(worker.current, nullptr));
  slot.worker.index = worker.index;
  slot.job.started_ns = job.started_ns;
  slot.job.ended_ns = job.ended_ns;
  note_end(slot, std::move(outcome), true);
}

void JobQueue::copied(void* token, Outcome outcome, std::int64_t started_ns,
                      std::int64_t ended_ns) noexcept {
  Slot& slot = *static_cast<Slot*>(token);
  slot.job.started_ns = started_ns;
  slot.job.ended_ns = ended_ns;
  note_end(slot, std::move(outcome), false);
}

/// Once a job is seen to be over the place may go. A core that ends one takes the next.
void JobQueue::note_end(Slot& slot, Outcome outcome, bool by_core) noexcept {
  callers_.fetch_add(1, std::memory_order_relaxed);
  bool soon = false;
  {
    const sys::Lock lock(mutex_);
    end(slot, std::move(outcome));
    soon = by_core && more_soon();
  }
  if (has_work()) cores_->wake();
  stir(soon);
  callers_.fetch_sub(1, std::memory_order_release);
}

/// Whether a core that takes the next job ends it soon. Under the mutex.
bool JobQueue::more_soon() const noexcept {
  return !calls_.empty() && copies_.empty() && ended_.size() < kToldAtOnce &&
         slot_of(calls_.first()).job.brief;
}

bool JobQueue::serve() noexcept {
  bool moved = give_back();
  while (take()) moved = true;
  if (has_work()) cores_->wake();
  moved |= start_copy();
  return moved;
}

bool JobQueue::give_back() noexcept {
  {
    const sys::Lock lock(mutex_);
    std::swap(taken_, ended_);
    to_serve_.fetch_sub(taken_.size(), std::memory_order_seq_cst);
  }
  const bool any = !taken_.empty();
  for (const std::uint64_t number : taken_) {
    Slot& slot = slot_of(number);
    feed_.finish(slot.worker, slot.job, std::exchange(slot.outcome, {}));
    slot.job.number = 0;
  }
  taken_.clear();
  while (first_ < next_ && slot_of(first_).job.number == 0) ++first_;
  failed_.forget_before(first_);
  return any;
}

/// Starts one copy: it may take its time, in which more urgent ones can become ready.
bool JobQueue::start_copy() noexcept {
  std::uint64_t number = 0;
  {
    const sys::Lock lock(mutex_);
    if (copies_.empty()) return false;
    number = copies_.take_first();
    to_serve_.fetch_sub(1, std::memory_order_seq_cst);
  }
  Slot& slot = slot_of(number);
  copy({.source = slot.job.from, .target = slot.job.to, .sink = this, .token = &slot});
  return true;
}

/// Takes a job from the feed. Returns false when there is none, or no room.
bool JobQueue::take() noexcept {
  if (next_ - first_ == kWindow) return false;
  Slot& slot = slot_of(next_);
  if (!feed_.next(slot.worker, slot.job)) return false;
  ++next_;
  const sys::Lock lock(mutex_);
  admit(slot);
  return true;
}

void JobQueue::admit(Slot& slot) noexcept {
  slot.over = false;
  slot.doomed = failed_.any_of(slot.job.waits);
  slot.open = 0;
  slot.dependents.clear();
  for (const std::uint64_t earlier : slot.job.waits) {
    Slot& other = slot_of(earlier);
    if (other.job.number != earlier || other.over) continue;
    if (!other.dependents.empty() && other.dependents.back() == slot.job.number) continue;
    other.dependents.push_back(slot.job.number);
    ++slot.open;
  }
  if (slot.open == 0) make_ready(slot);
}

void JobQueue::make_ready(Slot& slot) noexcept {
  if (slot.doomed) return end(slot, {WEIR_STATUS_POISONED, {}});
  const bool copies = slot.job.copies;
  (copies ? copies_ : calls_).add(slot.job);
  (copies ? to_serve_ : to_run_).fetch_add(1, std::memory_order_seq_cst);
}

void JobQueue::end(Slot& slot, Outcome outcome) noexcept {
  const bool failed = !outcome.ok();
  if (failed) failed_.add(slot.job.number);
  slot.outcome = std::move(outcome);
  slot.over = true;
  ended_.push_back(slot.job.number);
  to_serve_.fetch_add(1, std::memory_order_seq_cst);
  for (const std::uint64_t number : slot.dependents) {
    Slot& dependent = slot_of(number);
    dependent.doomed = dependent.doomed || failed;
    if (--dependent.open == 0) make_ready(dependent);
  }
}

}  // namespace weir::rt
