// What is new for a stream, and whether some thread is its owner.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/threads.hpp"
#include "core/action.hpp"
#include "core/action_queue.hpp"

namespace weir::rt {

/// Messages to the owner of a stream. The same word says whether the stream has an owner: a thread
/// that posts to a stream without one becomes the owner.
class Mailbox {
 public:
  Mailbox() noexcept : word_(&idle_mark) {}

  /// Anybody: adds a message. Returns whether the caller has become the owner; if not, it must not
  /// touch the stream again.
  bool post(Message& message) noexcept {
    Message* head = word_.load(std::memory_order_relaxed);
    do {
      message.next_message = is_mark(head) ? nullptr : head;
    } while (!word_.compare_exchange_weak(head, &message, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    if (!is_mark(head)) return false;
    owners_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  /// A producer whose push found the consumer idle. Returns whether it has become the owner.
  bool try_own() noexcept {
    Message* mark = &idle_mark;
    if (!word_.compare_exchange_strong(mark, nullptr, std::memory_order_seq_cst)) return false;
    owners_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  /// The same for one whose news makes an engine go on that accepts no action.
  bool try_own_even_if_blocked() noexcept {
    if (try_own()) return true;
    Message* mark = &blocked_mark;
    if (!word_.compare_exchange_strong(mark, nullptr, std::memory_order_seq_cst)) return false;
    owners_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  /// Owner: whether there is mail.
  bool has_messages() const noexcept { return word_.load(std::memory_order_relaxed) != nullptr; }
  /// Owner: takes all messages, linked by `next_message`, the oldest first.
  Message* take_messages() noexcept {
    return reversed(word_.exchange(nullptr, std::memory_order_acquire));
  }

  /// Owner: ceases to be that, as the consumer of `queue` too. Unless `accepting`, only messages
  /// bring the next owner. Returns false when there is news: then the caller still is the owner.
  bool release_ownership(ActionQueue& queue, bool accepting) noexcept {
    if (accepting && !queue.go_idle()) {
      if (!queue.poll()) sys::yield();  // a producer is about to push, perhaps on this core
      return false;
    }
    const std::uint64_t popped = queue.popped();
    Message* expected = nullptr;
    Message* const mark = accepting ? &idle_mark : &blocked_mark;
    if (!word_.compare_exchange_strong(expected, mark, std::memory_order_seq_cst)) return false;
    // A producer that came in between did not find the mark.
    if (accepting && queue.pushed() != popped) {
      expected = mark;
      if (word_.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) return false;
    }
    owners_.fetch_sub(1, std::memory_order_release);
    return true;
  }

  /// Whether no thread is the owner, and none is about to cease to be.
  bool has_no_owner() const noexcept {
    return is_mark(word_.load(std::memory_order_acquire)) &&
           owners_.load(std::memory_order_acquire) == 0;
  }
  /// Calls meanwhile() until then. The caller knows that there is no news to come.
  template <class Meanwhile>
  void wait_until_no_owner(Meanwhile&& meanwhile) const noexcept {
    while (!has_no_owner()) meanwhile();
  }

 private:
  static inline Message idle_mark;     ///< any news wakes the stream
  static inline Message blocked_mark;  ///< only messages do: its engine accepts no action

  static bool is_mark(const Message* message) noexcept {
    return message == &idle_mark || message == &blocked_mark;
  }
  static Message* reversed(Message* list) noexcept {
    Message* result = nullptr;
    while (list != nullptr) {
      Message* const next = list->next_message;
      list->next_message = result;
      result = list;
      list = next;
    }
    return result;
  }

  alignas(64) sys::Atomic<Message*> word_;  ///< messages, the newest first, or a mark
  sys::Atomic<std::uint32_t> owners_{0};    ///< threads that have not quite left yet
};

}  // namespace weir::rt
