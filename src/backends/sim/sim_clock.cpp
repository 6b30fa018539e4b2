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
  std::erase(actors_, &actor);
  while (acting_ == &actor) acted_.wait(lock);
}

void SimClock::schedule(std::int64_t at_ns, std::function<void()> event) {
  sys::Lock lock(mutex_);
  agenda_.push({std::max(at_ns, now_ns()), scheduled_++, std::move(event)});
}

void SimClock::let_all_act() noexcept {
  sys::Lock lock(mutex_);
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    acting_ = actors_[i];
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
