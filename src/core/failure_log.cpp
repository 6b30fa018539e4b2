#include "core/failure_log.hpp"

#include <utility>

namespace weir::rt {

bool FailureLog::add(Action& action) noexcept {
  const std::uint64_t id = action.id();
  sys::Lock lock(mutex_);
  used_.store(true, std::memory_order_release);
  try {
    order_.push_back(id);
    entries_.insert_or_assign(id, Entry{action.status, action.failure});
    while (entries_.size() > kMost) forget_oldest();
    return false;
  } catch (...) {
    action.kept_id = id;
    action.next = std::exchange(kept_, &action);
    return true;
  }
}

void FailureLog::forget_oldest() noexcept {
  entries_.erase(order_.front());
  order_.pop_front();
}

void FailureLog::remove(std::uint64_t id) noexcept {
  constexpr std::size_t kFew = 64;
  if (!used_.load(std::memory_order_acquire)) return;
  sys::Lock lock(mutex_);
  entries_.erase(id);
  if (order_.size() > 2 * entries_.size() + kFew) {
    std::erase_if(order_, [this](std::uint64_t each) { return !entries_.contains(each); });
  }
  for (Action* action = kept_; action != nullptr; action = action->next) {
    if (action->kept_id == id) action->kept_id = 0;
  }
}

FailureLog::Entry FailureLog::kept(std::uint64_t id) const noexcept {
  for (const Action* action = kept_; action != nullptr; action = action->next) {
    if (action->kept_id == id) return {action->status, action->failure};
  }
  return {};
}

FailureLog::Entry FailureLog::find(std::uint64_t id) const noexcept {
  if (!used_.load(std::memory_order_acquire)) return {};
  sys::Lock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? kept(id) : found->second;
}

}  // namespace weir::rt
