// What the threads of a rank wait for, for those who ask why nothing happens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/threads.hpp"

namespace weir::rt {

/// What a thread waits for, behind "waits for".
struct WaitName {
  const char* text;   ///< "a barrier"
  bool idle = false;  ///< nothing is wrong when it lasts

  WaitName(const char* words) noexcept : text(words) {}  // NOLINT: a text is a name
  WaitName(const char* words, bool is_idle) noexcept : text(words), idle(is_idle) {}
};

/// Lists the waits of a rank's threads for other ranks. Any thread.
class WaitBoard {
 public:
  class Entry;
  /// The waits at a time.
  struct State {
    std::string waits;           ///< "a barrier and a message"; "": no thread waits
    std::int64_t since_ns = 0;   ///< threads have waited since; 0: none waits, but for idle ones
    std::uint64_t movement = 0;  ///< another number when something has come or ended
  };

  /// Waits with no more than a pause between them, of which none was for something that came, are
  /// one: a program may look at other things now and then.
  explicit WaitBoard(std::int64_t pause_ns = 250'000'000) noexcept : pause_ns_(pause_ns) {}
  WaitBoard(const WaitBoard&) = delete;
  WaitBoard& operator=(const WaitBoard&) = delete;

  /// Throws std::bad_alloc.
  State state() const;
  /// A message has come from another rank, or from this one. One thread at a time.
  void note_message() noexcept {
    messages_.store(messages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  void enter(Entry& entry) noexcept;
  void leave(Entry& entry) noexcept;

  const std::int64_t pause_ns_;
  sys::Atomic<std::uint64_t> messages_{0};
  mutable sys::Mutex mutex_;  // short
  Entry* first_ = nullptr;    ///< the oldest
  Entry* last_ = nullptr;
  std::size_t at_work_ = 0;          ///< entries that are not idle
  std::int64_t since_ns_ = 0;        ///< 0: the next wait is a new one
  std::int64_t left_ns_ = 0;         ///< when the last one was given up
  std::array<char, 64> given_up_{};  ///< its name
  std::uint64_t ended_ = 0;          ///< waits, with what they were for
};

/// One wait, on the board from enter() until it goes.
class WaitBoard::Entry {
 public:
  Entry(WaitBoard& board, WaitName name) noexcept : board_(board), name_(name) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    if (entered_) board_.leave(*this);
  }

  void enter() noexcept {
    if (!std::exchange(entered_, true)) board_.enter(*this);
  }
  /// What it waited for is there.
  void end() noexcept { ended_ = true; }

 private:
  friend class WaitBoard;

  WaitBoard& board_;
  const WaitName name_;
  bool entered_ = false, ended_ = false;
  Entry* previous_ = nullptr;
  Entry* next_ = nullptr;
};

}  // namespace weir::rt
