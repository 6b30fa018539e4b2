// What the threads of a rank wait for, for reports of stalls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/threads.hpp"

namespace weir::rt {

/// Names what a thread waits for; follows "waits for".
struct WaitName {
  const char* text;   ///< "a barrier"
  bool idle = false;  ///< a long wait is normal

  WaitName(const char* words) noexcept : text(words) {}  // NOLINT: a text is a name
  WaitName(const char* words, bool is_idle) noexcept : text(words), idle(is_idle) {}
};

/// Lists the waits of a rank's threads for other ranks. Any thread.
class WaitRegistry {
 public:
  class Entry;
  /// A snapshot of the waits.
  struct State {
    std::string waits;  ///< "a barrier and a message"; "": no thread waits
    /// Since when threads have waited; 0: none waits, except idle ones.
    std::int64_t since_ns = 0;
    std::uint64_t movement = 0;  ///< changes when a message has arrived or a wait has ended
  };

  /// Consecutive waits with at most `pause_ns` between them, none of which was satisfied, count as
  /// one wait: a program may check other conditions in between.
  explicit WaitRegistry(std::int64_t pause_ns = 250'000'000) noexcept : pause_ns_(pause_ns) {}
  WaitRegistry(const WaitRegistry&) = delete;
  WaitRegistry& operator=(const WaitRegistry&) = delete;

  /// Throws std::bad_alloc.
  State state() const;
  /// Records a message from another rank, or from this one. One thread at a time.
  void note_message() noexcept {
    messages_.store(messages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  void enter(Entry& entry) noexcept;
  void leave(Entry& entry) noexcept;

  const std::int64_t pause_ns_;
  sys::Atomic<std::uint64_t> messages_{0};
  mutable sys::Mutex mutex_;                        // held briefly
  Entry* first_ WEIR_GUARDED_BY(mutex_) = nullptr;  ///< the oldest entry
  Entry* last_ WEIR_GUARDED_BY(mutex_) = nullptr;
  std::size_t active_ WEIR_GUARDED_BY(mutex_) = 0;            ///< entries that are not idle
  std::int64_t since_ns_ WEIR_GUARDED_BY(mutex_) = 0;         ///< 0: no wait to continue
  std::int64_t abandoned_ns_ WEIR_GUARDED_BY(mutex_) = 0;     ///< when the last wait ended
  std::array<char, 64> abandoned_ WEIR_GUARDED_BY(mutex_){};  ///< its name
  std::uint64_t ended_ WEIR_GUARDED_BY(mutex_) = 0;           ///< number of satisfied waits
};

/// One wait, registered from enter() to its destruction.
class WaitRegistry::Entry {
 public:
  Entry(WaitRegistry& registry, WaitName name) noexcept : registry_(registry), name_(name) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    if (entered_) registry_.leave(*this);
  }

  void enter() noexcept {
    if (!std::exchange(entered_, true)) registry_.enter(*this);
  }
  /// Records that the wait is satisfied.
  void end() noexcept { ended_ = true; }

 private:
  friend class WaitRegistry;

  WaitRegistry& registry_;
  const WaitName name_;
  bool entered_ = false, ended_ = false;
  // Guarded by the registry's mutex, whose functions alone use them.
  Entry* previous_ = nullptr;
  Entry* next_ = nullptr;
};

}  // namespace weir::rt
