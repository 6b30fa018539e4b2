// The seam to threads: atomics, waits, locks, the clock.
//
// Everything whose outcome depends on timing goes through here. Test builds put another header of
// this name in front of it: tests/scheduled runs all threads by a seeded scheduler in virtual time,
// tests/relacy explores what the memory model allows.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"

namespace weir::rt::sys {

template <class T>
using Atomic = std::atomic<T>;

/// Nanoseconds of a monotonic clock.
std::int64_t now_ns() noexcept;

/// A deadline that never comes.
inline constexpr std::int64_t kNever = INT64_MAX;

/// Turns a public timeout (negative: for ever) into a deadline of now_ns().
std::int64_t deadline_after(std::int64_t timeout_ns) noexcept;

/// Tells the core that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Gives the core to another runnable thread, if there is one.
void yield() noexcept;

/// Sleeps until the deadline, as exactly as the system allows.
void sleep_until(std::int64_t deadline_ns) noexcept;

/// Sleeps while word == expected, until woken or the deadline. May return early.
void wait(const Atomic<std::uint32_t>& word, std::uint32_t expected,
          std::int64_t deadline_ns = kNever) noexcept;
void wake_one(const Atomic<std::uint32_t>& word) noexcept;
void wake_all(const Atomic<std::uint32_t>& word) noexcept;

class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void lock() WEIR_ACQUIRE() { mutex_.lock(); }
  bool try_lock() WEIR_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() WEIR_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};
using Lock = BasicLock<Mutex>;

/// A condition with deadlines of now_ns().
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }
  void wait(Lock& lock) { wait_until(lock, kNever); }
  void wait_until(Lock& lock, std::int64_t deadline_ns);

 private:
  std::condition_variable condition_;
};

/// A named thread that is joined when it goes out of scope.
class Thread {
 public:
  Thread() = default;
  /// Throws Error{unavailable} when the system has no thread left.
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&&) = delete;
  ~Thread() { join(); }

  void join() noexcept;

 private:
  std::thread thread_;
};

/// Binds the calling thread to processors (operating system numbers). Returns false when refused.
bool bind_this_thread(const std::vector<unsigned>& processors) noexcept;

/// Says that the calling thread, which has little to do at a time, is to run as soon as it is
/// woken, also where others compute. Systems that know no such wish ignore it.
void run_promptly() noexcept;

}  // namespace weir::rt::sys
