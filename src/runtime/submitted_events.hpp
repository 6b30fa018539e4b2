// Which events belong to jobs that a device has.
#pragma once

#include <array>
#include <cstdint>

#include "core/action.hpp"

namespace weir::rt {

/// Maps events to submission ids for a place with device ordering, so that streams wait for each
/// other on the device. Only the thread that talks to the device uses it. An event that was dropped
/// from the table is waited for on the host.
class SubmittedEvents {
 public:
  /// An action became a job: returns those that await its event, linked by
  /// `next_awaiting_submission`.
  EventWait* note(std::uint64_t id, std::uint64_t number) noexcept {
    submissions_[bucket_of(id)] = {id, number};
    EventWait* found = nullptr;
    for (EventWait** link = &waits_[bucket_of(id)]; *link != nullptr;) {
      EventWait& wait = **link;
      if (wait.event.opaque[1] != id) {
        link = &wait.next_awaiting_submission;
        continue;
      }
      *link = wait.next_awaiting_submission;
      wait.awaits_submission = false;
      wait.next_awaiting_submission = found;
      found = &wait;
    }
    return found;
  }

  /// Returns the job of an event that is not complete, 0: not known.
  std::uint64_t find(std::uint64_t id) const noexcept {
    const Entry& entry = submissions_[bucket_of(id)];
    return entry.id == id ? entry.number : 0;
  }

  /// Lets note() return the wait.
  void add_wait(EventWait& wait) noexcept {
    EventWait*& first = waits_[bucket_of(wait.event.opaque[1])];
    wait.next_awaiting_submission = first;
    wait.awaits_submission = true;
    first = &wait;
  }
  /// Takes a wait back that note() has not returned.
  void remove_wait(EventWait& wait) noexcept {
    EventWait** link = &waits_[bucket_of(wait.event.opaque[1])];
    while (*link != &wait) link = &(*link)->next_awaiting_submission;
    *link = wait.next_awaiting_submission;
    wait.awaits_submission = false;
  }

 private:
  struct Entry {
    std::uint64_t id = 0, number = 0;
  };
  static constexpr std::size_t kEntries = 1024;

  static std::size_t bucket_of(std::uint64_t id) noexcept {
    return (id * 0x9E3779B97F4A7C15u) >> 54;
  }

  std::array<Entry, kEntries> submissions_;
  std::array<EventWait*, kEntries> waits_{};
};

}  // namespace weir::rt
