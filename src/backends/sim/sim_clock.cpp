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
}

void SimClock::schedule(std::int64_t at_ns, std::function<void()> event) {
  sys::Lock lock(mutex_);
  agenda_.push({std::max(at_ns, now_ns()), scheduled_++, std::move(event)});
}

bool SimClock::drive() noexcept {
  std::vector<Actor*> actors;
  {
    sys::Lock lock(mutex_);
    actors = actors_;
  }
  for (Actor* actor : actors) actor->act();
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
