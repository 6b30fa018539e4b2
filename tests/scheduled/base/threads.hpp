// The seam to threads, in front of src/base/threads.hpp: everything is a point of the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "scheduler.hpp"

namespace weir::rt::sys {

using schedule::Operation;

/// std::atomic, with a point before each operation. Sequentially consistent: weaker orders are
/// tests/relacy's.
template <class T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
    schedule::point(Operation::load);
    return value_;
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    schedule::point(Operation::store);
    value_ = value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([value](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T desired,
                               std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) noexcept {
    schedule::point(Operation::change);
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = desired;
    return true;
  }
  bool compare_exchange_weak(T& expected, T desired,
                             std::memory_order success = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) noexcept {
    if (schedule::mishap()) {
      expected = value_;
      return false;
    }
    return compare_exchange_strong(expected, desired, success, failure);
  }
  T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([by](T old) { return static_cast<T>(old + by); });
  }
  T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([by](T old) { return static_cast<T>(old - by); });
  }
  T fetch_or(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([by](T old) { return static_cast<T>(old | by); });
  }
  T fetch_and(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([by](T old) { return static_cast<T>(old & by); });
  }

 private:
  template <class Change>
  T change(Change&& result) noexcept {
    schedule::point(Operation::change);
    const T old = value_;
    value_ = result(old);
    return old;
  }

  T value_{};
};

inline std::int64_t now_ns() noexcept { return schedule::now_ns(); }
inline constexpr std::int64_t kNever = INT64_MAX;
inline std::int64_t deadline_after(std::int64_t timeout_ns) noexcept {
  const std::int64_t now = now_ns();
  return timeout_ns < 0 || timeout_ns > kNever - now ? kNever : now + timeout_ns;
}

inline void pause() noexcept { schedule::pause(); }
inline void yield() noexcept { schedule::pause(); }
inline void sleep_until(std::int64_t deadline_ns) noexcept {
  const char nobody_wakes = 0;
  while (now_ns() < deadline_ns) schedule::block(&nobody_wakes, deadline_ns);
}

inline void wait(const Atomic<std::uint32_t>& word, std::uint32_t expected,
                 std::int64_t deadline_ns = kNever) noexcept {
  if (word.load() == expected && !schedule::mishap()) schedule::block(&word, deadline_ns);
}
inline void wake_one(const Atomic<std::uint32_t>& word) noexcept { schedule::wake(&word, false); }
inline void wake_all(const Atomic<std::uint32_t>& word) noexcept { schedule::wake(&word, true); }

class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() noexcept WEIR_ACQUIRE() {
    schedule::point(Operation::lock);
    while (locked_) schedule::block(this, kNever);
    locked_ = true;
  }
  bool try_lock() noexcept WEIR_TRY_ACQUIRE(true) {
    schedule::point(Operation::lock);
    return !std::exchange(locked_, true);
  }
  void unlock() noexcept WEIR_RELEASE() {
    release();
    schedule::point(Operation::wake);
  }
  /// Unlocks at no point: what follows happens at the same moment.
  void release() noexcept {
    locked_ = false;
    schedule::unblock(this, false);
  }

 private:
  bool locked_ = false;
};
using Lock = BasicLock<Mutex>;

class Condition {
 public:
  void notify_one() noexcept { schedule::wake(this, false); }
  void notify_all() noexcept { schedule::wake(this, true); }
  void wait(Lock& lock) { wait_until(lock, kNever); }
  void wait_until(Lock& lock, std::int64_t deadline_ns) WEIR_NOT_ANALYSED {
    lock.native().mutex()->release();
    if (!schedule::mishap()) schedule::block(this, deadline_ns);
    lock.native().mutex()->lock();
  }
};

class Thread : public schedule::Thread {
 public:
  using schedule::Thread::Thread;
};

inline bool bind_this_thread(const std::vector<unsigned>&) noexcept { return false; }
inline void run_promptly() noexcept {}

}  // namespace weir::rt::sys
