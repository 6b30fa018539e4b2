// The interface to threads: atomics, waits, locks, the clock.
//
// All code whose outcome depends on timing uses this interface. Test builds replace this header by
// one of the same name: tests/scheduled runs all threads on a seeded scheduler in virtual time,
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

/// A deadline that never passes.
inline constexpr std::int64_t kNever = INT64_MAX;

/// Turns a public timeout (negative: for ever) into a deadline of now_ns().
std::int64_t deadline_after(std::int64_t timeout_ns) noexcept;

/// Hints to the core that this is a spin loop, and delays it for some ten cycles or more.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // most cores execute yield as a nop
#endif
}

/// Yields the core to another runnable thread, if any.
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
  /// Throws Error{unavailable} when the system refuses another thread.
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

/// Requests that the calling thread, which runs only briefly at a time, preempts computing threads
/// when it is woken. No effect on systems without such a setting.
void run_promptly() noexcept;

}  // namespace weir::rt::sys
