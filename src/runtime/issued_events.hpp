// Which events belong to jobs that a device has.
#pragma once

#include <array>
#include <cstdint>

#include "core/action.hpp"

namespace weir::rt {

/// The events of a place whose device orders jobs, so that its streams can wait for each other
/// there. Used by the thread that talks to the device. What it forgets is waited for on the host.
class IssuedEvents {
 public:
  /// An action became a job: returns those that await its event, linked by `next_awaiting`.
  EventWait* note(std::uint64_t id, std::uint64_t number) noexcept {
    issued_[place_of(id)] = {id, number};
    EventWait* found = nullptr;
    for (EventWait** link = &awaiting_[place_of(id)]; *link != nullptr;) {
      EventWait& wait = **link;
      if (wait.event.opaque[1] != id) {
        link = &wait.next_awaiting;
        continue;
      }
      *link = wait.next_awaiting;
      wait.awaiting = false;
      wait.next_awaiting = found;
      found = &wait;
    }
    return found;
  }

  /// Returns the job of an event that is not complete, 0: not known.
  std::uint64_t find(std::uint64_t id) const noexcept {
    const Entry& entry = issued_[place_of(id)];
    return entry.id == id ? entry.number : 0;
  }

  /// Lets note() return the wait.
  void await(EventWait& wait) noexcept {
    EventWait*& first = awaiting_[place_of(wait.event.opaque[1])];
    wait.next_awaiting = first;
    wait.awaiting = true;
    first = &wait;
  }
  /// Takes a wait back that note() has not returned.
  void forget(EventWait& wait) noexcept {
    EventWait** link = &awaiting_[place_of(wait.event.opaque[1])];
    while (*link != &wait) link = &(*link)->next_awaiting;
    *link = wait.next_awaiting;
    wait.awaiting = false;
  }

 private:
  struct Entry {
    std::uint64_t id = 0, number = 0;
  };
  static constexpr std::size_t kEntries = 1024;

  static std::size_t place_of(std::uint64_t id) noexcept {
    return (id * 0x9E3779B97F4A7C15u) >> 54;
  }

  std::array<Entry, kEntries> issued_;
  std::array<EventWait*, kEntries> awaiting_{};
};

}  // namespace weir::rt
