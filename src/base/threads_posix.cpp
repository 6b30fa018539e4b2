#include "base/threads.hpp"

#include <cerrno>
#include <chrono>
#include <climits>
#include <system_error>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.hpp"

namespace weir::rt::sys {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

timespec to_timespec(std::int64_t ns) noexcept {
  return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
}

long futex(const Atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

/// The argument of Linux's sched_setattr(), for which C libraries before glibc 2.41 have no type.
struct SchedulingAttributes {
  std::uint32_t bytes, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

}  // namespace

std::int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

std::int64_t deadline_after(std::int64_t timeout_ns) noexcept {
  if (timeout_ns < 0) return kNever;
  const std::int64_t now = now_ns();
  return timeout_ns > kNever - now ? kNever : now + timeout_ns;
}

void yield() noexcept { sched_yield(); }

void sleep_until(std::int64_t deadline_ns) noexcept {
  const timespec time = to_timespec(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

void wait(const Atomic<std::uint32_t>& word, std::uint32_t expected,
          std::int64_t deadline_ns) noexcept {
  if (deadline_ns == kNever) {
    futex(word, FUTEX_WAIT_BITSET, expected, nullptr);
  } else {
    const timespec time = to_timespec(deadline_ns);
    futex(word, FUTEX_WAIT_BITSET, expected, &time);
  }
}

void wake_one(const Atomic<std::uint32_t>& word) noexcept { futex(word, FUTEX_WAKE, 1, nullptr); }

void wake_all(const Atomic<std::uint32_t>& word) noexcept {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

void Condition::wait_until(Lock& lock, std::int64_t deadline_ns) {
  std::unique_lock native(lock.native().mutex()->mutex_, std::adopt_lock);
  if (deadline_ns == kNever) {
    condition_.wait(native);
  } else {
    condition_.wait_until(
        native, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)));
  }
  native.release();
}

Thread::Thread(const std::string& name, std::function<void()> body) try : thread_(std::move(body)) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
} catch (const std::system_error& error) {
  fail(WEIR_STATUS_UNAVAILABLE, "cannot start thread '{}': {}", name, error.code().message());
}

void Thread::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

bool bind_this_thread(const std::vector<unsigned>& processors) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned processor : processors) {
    if (processor < CPU_SETSIZE) CPU_SET(processor, &set);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

/// Since Linux 6.12 a thread that asks for short slices preempts one that has longer ones.
void run_promptly() noexcept {
  constexpr std::uint64_t kSliceNs = 100'000;
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace weir::rt::sys
