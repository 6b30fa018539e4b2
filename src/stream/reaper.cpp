#include "stream/reaper.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

void Reaper::add(const void* object, Destroy destroy) {
  const sys::Lock lock(mutex_);
  const bool known = object == current_ ||
                     std::any_of(requests_.begin(), requests_.end(),
                                 [&](const Request& order) { return order.object == object; });
  if (known || stopped_) return;
  requests_.push_back({object, std::move(destroy)});
  try {
    if (!thread_) thread_.emplace("reaper", [this] { run_thread(); });
  } catch (...) {
    requests_.pop_back();
    throw;
  }
  changed_.notify_all();
}

bool Reaper::take_back(const void* object) noexcept {
  sys::Lock lock(mutex_);
  if (!thread_) return true;
  std::erase_if(requests_, [&](const Request& order) { return order.object == object; });
  if (object != current_ || id_ == this_thread()) return true;
  while (current_ == object) changed_.wait(lock);
  return false;
}

bool Reaper::busy() const noexcept {
  const sys::Lock lock(mutex_);
  return current_ != nullptr || !requests_.empty();
}

void Reaper::settle() noexcept {
  if (NoWaitScope::active()) return;
  sys::Lock lock(mutex_);
  while (current_ != nullptr || (!requests_.empty() && !stopped_)) changed_.wait(lock);
}

void Reaper::stop(std::int64_t deadline_ns) noexcept {
  sys::Lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  while (current_ != nullptr && sys::now_ns() < deadline_ns) {
    changed_.wait_until(lock, deadline_ns);
  }
}

void Reaper::join() noexcept { thread_.reset(); }

void Reaper::run_thread() noexcept {
  sys::Lock lock(mutex_);
  id_ = this_thread();
  while (!stopped_) {
    if (requests_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Request order = std::move(requests_.front());
    requests_.pop_front();
    current_ = order.object;
    lock.unlock();
    order.destroy();
    lock.lock();
    current_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace weir::rt
