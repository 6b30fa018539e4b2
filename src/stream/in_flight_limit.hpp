// Bounds the actions of a stream that are in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/signal.hpp"
#include "base/threads.hpp"
#include "core/action.hpp"

namespace weir::rt {

/// Backpressure: at the limit a thread of the program asks the owner for room, and waits until an
/// eighth of the actions in flight is complete.
class InFlightLimit {
 public:
  /// From a thread that waits to enqueue; on its stack.
  struct Request : Message {
    std::uint64_t completed = 0;  ///< number of actions that must be complete
    Signal signal;
    Request* next = nullptr;
  };

  /// `checks_each`: has_room() is never true.
  InFlightLimit(std::size_t most, bool checks_each) noexcept
      : most_(most), checks_each_(checks_each) {}

  std::size_t most() const noexcept { return most_; }

  // Producers.
  /// Whether enqueueing needs no further check.
  bool has_room(std::uint64_t pushed) const noexcept {
    return pushed < room_until_.load(std::memory_order_relaxed);
  }
  /// Looks at the counts. Returns whether there is room; otherwise fills in a request.
  bool check(std::uint64_t pushed, std::uint64_t completed, Request& request) noexcept {
    if (pushed - completed < most_) {
      if (!checks_each_) room_until_.store(completed + most_, std::memory_order_relaxed);
      return true;
    }
    const std::uint64_t part = most_ < kParts ? 1 : most_ / kParts;
    request.message_kind = Message::Kind::room;
    request.completed = pushed - most_ + part;
    return false;
  }

  // The owner.
  bool is_awaited() const noexcept { return requests_ != nullptr; }
  void add(Request& request) noexcept {
    request.next = requests_;
    requests_ = &request;
  }
  /// Wakes the threads whose number of actions is complete.
  void grant(std::uint64_t completed) noexcept {
    Request** link = &requests_;
    while (Request* const request = *link) {
      if (request->completed > completed) {
        link = &request->next;
        continue;
      }
      *link = request->next;
      request->signal.deliver();  // last access: the waiting thread may leave
    }
  }

 private:
  static constexpr std::uint64_t kParts = 8;

  const std::size_t most_;
  const bool checks_each_;
  sys::Atomic<std::uint64_t> room_until_{0};  ///< enqueueing up to this number needs no check
  Request* requests_ = nullptr;
};

}  // namespace weir::rt
