// Virtual time: a discrete-event simulation shared by all simulated devices of a runtime.
#pragma once

#include <atomic>
#include <compare>
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
  /// The time of an event, and its number among all.
  struct When {
    std::int64_t at_ns = 0;
    std::uint64_t order = 0;

    auto operator<=>(const When&) const = default;
  };

 public:
  /// An object, such as a place, that may start work at the current time.
  class Actor {
   public:
    /// Starts what can start now. Called by drive() only.
    virtual void act() noexcept = 0;

   protected:
    ~Actor() = default;
  };

  /// An event whose time changes until it happens.
  class Timer {
   public:
    /// Called by drive() only, at the timer's time; the timer is no longer set.
    virtual void expired() noexcept = 0;

   protected:
    ~Timer() = default;

   private:
    friend class SimClock;
    bool set_ = false;  // guarded by the clock's mutex, as is when_
    When when_;
  };

  std::int64_t now_ns() const noexcept { return now_.load(std::memory_order_acquire); }

  void add(Actor& actor);
  /// Removes an actor; returns when it no longer acts.
  void remove(Actor& actor) noexcept;

  void add(Timer& timer);
  /// Not while another thread drives.
  void remove(Timer& timer) noexcept;
  /// Schedules the timer's event at a time that is not in the past, in place of the former time.
  void set(Timer& timer, std::int64_t at_ns) noexcept;

  /// Schedules an event at a time that is not in the past. Throws std::bad_alloc.
  void schedule(std::int64_t at_ns, std::function<void()> event);

  /// Calls all actors, then runs the next event. Returns false when there is none.
  bool drive() noexcept;

 private:
  struct Event {
    When when;
    std::function<void()> happen;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const noexcept { return a.when > b.when; }
  };

  void let_all_act() noexcept;
  When next_number(std::int64_t at_ns) noexcept WEIR_REQUIRES(mutex_);
  Timer* take_timer() noexcept WEIR_REQUIRES(mutex_);

  sys::Mutex mutex_;  // of the agenda, the timers and the actors
  sys::Condition acted_;
  std::priority_queue<Event, std::vector<Event>, Later> agenda_ WEIR_GUARDED_BY(mutex_);
  std::vector<Timer*> timers_
      WEIR_GUARDED_BY(mutex_);  ///< one for each device whose memory has a bandwidth
  std::vector<Actor*> actors_ WEIR_GUARDED_BY(mutex_);
  Actor* acting_ WEIR_GUARDED_BY(mutex_) = nullptr;
  std::size_t next_ WEIR_GUARDED_BY(mutex_) = 0;  ///< index of the one that acts next
  std::uint64_t scheduled_ WEIR_GUARDED_BY(mutex_) = 0;
  sys::Atomic<std::int64_t> now_{0};
};

}  // namespace weir::rt
