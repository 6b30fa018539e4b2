#include "core/failure_log.hpp"

#include <utility>

namespace weir::rt {

template <class Visit>
void FailureLog::each_kept(Visit&& visit) const {
  for (Action* action = kept_; action != nullptr; action = action->next) visit(*action);
  for (Ticket* ticket = kept_tickets_; ticket != nullptr; ticket = ticket->next) visit(*ticket);
}

template <class Slot>
bool FailureLog::add(Slot& slot, Slot* FailureLog::*kept) noexcept {
  const std::uint64_t id = slot.id();
  sys::Lock lock(mutex_);
  used_.store(true, std::memory_order_release);
  try {
    order_.push_back(id);
    entries_.insert_or_assign(id, Entry{slot.status, slot.failure});
    while (entries_.size() > kMaxEntries) forget_oldest();
    return false;
  } catch (...) {
    slot.kept_id = id;
    slot.next = std::exchange(this->*kept, &slot);
    return true;
  }
}

template bool FailureLog::add(Action& slot, Action* FailureLog::*kept) noexcept;
template bool FailureLog::add(Ticket& slot, Ticket* FailureLog::*kept) noexcept;

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
    std::erase_if(order_, [this](std::uint64_t each)
                              WEIR_REQUIRES(mutex_) { return !entries_.contains(each); });
  }
  each_kept([id](auto& slot) {
    if (slot.kept_id == id) slot.kept_id = 0;
  });
}

FailureLog::Entry FailureLog::kept(std::uint64_t id) const noexcept {
  Entry found;
  each_kept([&](const auto& slot) {
    if (slot.kept_id == id) found = {slot.status, slot.failure};
  });
  return found;
}

FailureLog::Entry FailureLog::find(std::uint64_t id) const noexcept {
  if (!used_.load(std::memory_order_acquire)) return {};
  sys::Lock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? kept(id) : found->second;
}

}  // namespace weir::rt
