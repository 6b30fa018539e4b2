// Virtual time: a discrete-event simulation shared by all simulated cards of a runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

/// The clock and its agenda. Deterministic: events of the same time happen in the order in which
/// they were scheduled. Time advances only in drive().
class SimClock {
 public:
  /// Somebody who may have something to start now, such as a place.
  class Actor {
   public:
    /// Starts what can start now. Called by drive() only.
    virtual void act() noexcept = 0;

   protected:
    ~Actor() = default;
  };

  std::int64_t now_ns() const noexcept { return now_.load(std::memory_order_acquire); }

  void add(Actor& actor);
  /// Returns when the actor does not act any more.
  void remove(Actor& actor) noexcept;

  /// Plans an event at a time that is not in the past. Throws std::bad_alloc.
  void schedule(std::int64_t at_ns, std::function<void()> event);

  /// Lets all actors act, then makes the next event happen. Returns false when there is none.
  bool drive() noexcept;

 private:
  void let_all_act() noexcept;

  struct Event {
    std::int64_t at_ns;
    std::uint64_t order;
    std::function<void()> happen;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const noexcept {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }
  };

  sys::Mutex mutex_;  // of the agenda and the actors
  sys::Condition acted_;
  std::priority_queue<Event, std::vector<Event>, Later> agenda_;
  std::vector<Actor*> actors_;
  Actor* acting_ = nullptr;
  std::size_t next_ = 0;  ///< index of the one that acts next
  std::uint64_t scheduled_ = 0;
  sys::Atomic<std::int64_t> now_{0};
};

}  // namespace weir::rt
