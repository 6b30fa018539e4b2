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

void SimClock::add(Timer& timer) {
  sys::Lock lock(mutex_);
  timers_.push_back(&timer);
}

void SimClock::remove(Timer& timer) noexcept {
  sys::Lock lock(mutex_);
  std::erase(timers_, &timer);
}

void SimClock::set(Timer& timer, std::int64_t at_ns) noexcept {
  sys::Lock lock(mutex_);
  timer.set_ = true;
  timer.when_ = next_number(at_ns);
}

void SimClock::schedule(std::int64_t at_ns, std::function<void()> event) {
  sys::Lock lock(mutex_);
  agenda_.push({next_number(at_ns), std::move(event)});
}

SimClock::When SimClock::next_number(std::int64_t at_ns) noexcept {
  return {std::max(at_ns, now_ns()), scheduled_++};
}

/// Takes the next timer if it is before the agenda's next event, and unsets it; null: none.
SimClock::Timer* SimClock::take_timer() noexcept {
  Timer* first = nullptr;
  for (Timer* const timer : timers_) {
    if (timer->set_ && (first == nullptr || timer->when_ < first->when_)) first = timer;
  }
  if (first == nullptr) return nullptr;
  if (!agenda_.empty() && agenda_.top().when < first->when_) return nullptr;
  first->set_ = false;
  return first;
}

void SimClock::let_all_act() noexcept {
  sys::Lock lock(mutex_);
  for (next_ = 0; next_ < actors_.size();) {
    Actor* const actor = acting_ = actors_[next_++];
    lock.unlock();
    actor->act();
    lock.lock();
    acting_ = nullptr;
    acted_.notify_all();
  }
}

bool SimClock::drive() noexcept {
  let_all_act();
  std::function<void()> happen;
  Timer* timer = nullptr;
  {
    sys::Lock lock(mutex_);
    timer = take_timer();
    if (timer != nullptr) {
      now_.store(timer->when_.at_ns, std::memory_order_release);
    } else {
      if (agenda_.empty()) return false;
      auto& next = const_cast<Event&>(agenda_.top());
      now_.store(next.when.at_ns, std::memory_order_release);
      happen = std::move(next.happen);
      agenda_.pop();
    }
  }
  timer != nullptr ? timer->expired() : happen();
  return true;
}

}  // namespace weir::rt
