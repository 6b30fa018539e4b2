#include "backends/sim/sim_clock.hpp"

#include <algorithm>
#include <utility>

namespace weir::rt {

void SimClock::add(Actor& actor) {
  sys::Lock lock(mutex_);
  actors_.push_back(&actor);
}

void SimClock::remove(Actor& actor) noexcept {
  sys::Lock lock(mutex_);
  const auto found = std::find(actors_.begin(), actors_.end(), &actor);
  if (found != actors_.end()) {
    if (found < actors_.begin() + static_cast<std::ptrdiff_t>(next_)) --next_;
    actors_.erase(found);
  }
  while (acting_ == &actor) acted_.wait(lock);
}

void SimClock::schedule(std::int64_t at_ns, std::function<void()> event) {
  sys::Lock lock(mutex_);
  agenda_.push({std::max(at_ns, now_ns()), scheduled_++, std::move(event)});
}

void SimClock::let_all_act() noexcept {
  sys::Lock lock(mutex_);
  for (next_ = 0; next_ < actors_.size();) {
    acting_ = actors_[next_++];
    lock.unlock();
    acting_->act();
    lock.lock();
    acting_ = nullptr;
    acted_.notify_all();
  }
}

bool SimClock::drive() noexcept {
  let_all_act();
  std::function<void()> happen;
  {
    sys::Lock lock(mutex_);
    if (agenda_.empty()) return false;
    auto& next = const_cast<Event&>(agenda_.top());
    now_.store(next.at_ns, std::memory_order_release);
    happen = std::move(next.happen);
    agenda_.pop();
  }
  happen();
  return true;
}

}  // namespace weir::rt
