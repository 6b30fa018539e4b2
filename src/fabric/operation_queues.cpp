#include "fabric/operation_queues.hpp"

#include <algorithm>
#include <utility>

#include "base/thread_role.hpp"

namespace weir::rt {

bool OperationQueues::empty() const noexcept {
  return std::all_of(waiting_.begin(), waiting_.end(),
                     [](const Operations& each) { return each.empty(); });
}

void OperationQueues::submit(Operations& some) noexcept {
  {
    const sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), some);
  }
  submissions_.fetch_add(1);
}

void OperationQueues::add(Operations& some) noexcept {
  Operations& queue = waiting_[some.front().operation.target];
  queue.splice(queue.end(), some);
}

bool OperationQueues::take_submissions() noexcept {
  if (submissions_.load() == 0) return false;
  const sys::Lock lock(mutex_);
  submissions_.store(0);
  while (!submitted_.empty()) {
    Operations& queue = waiting_[submitted_.front().operation.target];
    queue.splice(queue.end(), submitted_, submitted_.begin());
  }
  return true;
}

bool OperationQueues::push() noexcept {
  bool moved = false;
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    try {
      moved |= push_to(rank);
    } catch (...) {  // no memory: the next pass tries again
    }
  }
  return moved;
}

bool OperationQueues::push_to(Rank to) {
  Operations& queue = waiting_[to];
  bool moved = false;
  while (!queue.empty()) {
    const auto first = queue.begin();
    const bool lost_ranks = lost_ranks_.is_lost(to);
    if (!lost_ranks && !transport_.start(first->operation)) break;
    under_way_.splice(under_way_.end(), queue, first);
    moved = true;
    if (lost_ranks) completed(first->operation.token, 0, lost_ranks_.outcome(to));
  }
  return moved;
}

void OperationQueues::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  const Started& started = *static_cast<const Started*>(token);
  Operations one;
  one.splice(one.begin(), under_way_, started.self);
  finish(started, old, std::move(outcome));
}

void OperationQueues::finish(const Started& started, std::int64_t old, Outcome outcome) noexcept {
  Account& account = *started.account;
  const Rank to = started.operation.target;
  if (started.done != nullptr) {
    const NoWaitScope scope;
    started.done->completed(old, outcome);
  } else if (!outcome.ok()) {
    const SpinGuard guard(account.lock);
    if (account.failures[to].ok()) account.failures[to] = std::move(outcome);
  }
  account.pending[to].fetch_sub(1);
}

}  // namespace weir::rt
