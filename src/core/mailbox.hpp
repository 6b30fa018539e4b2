// The messages to a stream, and whether a thread owns it.
#pragma once

#include <atomic>
#include <cassert>
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

  /// Posts a message. Returns whether the caller has become the owner; if not, it must not access
  /// the stream again. Any thread.
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

  /// Called by a producer whose push found the consumer idle. Returns whether it has become the
  /// owner.
  bool try_own() noexcept {
    Message* mark = &idle_mark;
    if (!word_.compare_exchange_strong(mark, nullptr, std::memory_order_seq_cst)) return false;
    owners_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  /// The same for a thread whose message unblocks an engine that accepts no action.
  bool try_own_even_if_blocked() noexcept {
    if (try_own()) return true;
    Message* mark = &blocked_mark;
    if (!word_.compare_exchange_strong(mark, nullptr, std::memory_order_seq_cst)) return false;
    owners_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  /// Whether a thread owns the stream: true for the owner. For assertions.
  bool is_owned() const noexcept { return !is_mark(word_.load(std::memory_order_relaxed)); }

  /// Owner: whether there are messages.
  bool has_messages() const noexcept { return word_.load(std::memory_order_relaxed) != nullptr; }
  /// Owner: takes all messages, the oldest first, linked by `next_message`.
  Message* take_messages() noexcept {
    Message* const newest = word_.exchange(nullptr, std::memory_order_acquire);
    assert(!is_mark(newest));  // the caller owns the stream
    return reversed(newest);
  }

  /// Owner: releases ownership, and the role of consumer of `queue`. Unless `accepting`, only a
  /// message gives the stream its next owner. Returns false if there are messages or actions: the
  /// caller is then still the owner.
  bool release_ownership(ActionQueue& queue, bool accepting) noexcept {
    assert(is_owned());
    if (accepting && !queue.go_idle()) {
      if (!queue.poll()) sys::yield();  // a producer is about to push, perhaps on this core
      return false;
    }
    const std::uint64_t popped = queue.popped();
    Message* expected = nullptr;
    Message* const mark = accepting ? &idle_mark : &blocked_mark;
    if (!word_.compare_exchange_strong(expected, mark, std::memory_order_seq_cst)) return false;
    // A producer that pushed in between did not see the mark.
    if (accepting && queue.pushed() != popped) {
      expected = mark;
      if (word_.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) return false;
    }
    [[maybe_unused]] const std::uint32_t owners = owners_.fetch_sub(1, std::memory_order_release);
    assert(owners > 0);
    return true;
  }

  /// Whether no thread is the owner, and none is still releasing ownership.
  bool has_no_owner() const noexcept {
    return is_mark(word_.load(std::memory_order_acquire)) &&
           owners_.load(std::memory_order_acquire) == 0;
  }
  /// Calls meanwhile() until has_no_owner(). The caller knows that no message will arrive.
  template <class Meanwhile>
  void wait_until_no_owner(Meanwhile&& meanwhile) const noexcept {
    while (!has_no_owner()) meanwhile();
  }

 private:
  static inline Message idle_mark;     ///< a push or a message gives the stream an owner
  static inline Message blocked_mark;  ///< only a message does: the engine accepts no action

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
  sys::Atomic<std::uint32_t> owners_{0};    ///< threads that are still releasing ownership
};

}  // namespace weir::rt
