#include "core/failure_log.hpp"

#include "base/log.hpp"

namespace weir::rt {

void FailureLog::add(std::uint64_t id, weir_status status, const FailureRef& failure) noexcept {
  sys::Lock lock(mutex_);
  used_.store(true, std::memory_order_release);
  try {
    order_.push_back(id);
    entries_.insert_or_assign(id, Entry{status, failure});
    if (order_.size() > kMost) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
  } catch (...) {
    log::warning("no memory to remember how an event ended: {}", failure->describe(false));
  }
}

void FailureLog::remove(std::uint64_t id) noexcept {
  sys::Lock lock(mutex_);
  entries_.erase(id);
}

FailureLog::Entry FailureLog::find(std::uint64_t id) const noexcept {
  if (!used_.load(std::memory_order_acquire)) return {};
  sys::Lock lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? Entry{} : found->second;
}

}  // namespace weir::rt
