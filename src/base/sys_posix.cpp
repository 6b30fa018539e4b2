#include "base/sys.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
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

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

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

void wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
          std::int64_t deadline_ns) noexcept {
  if (deadline_ns == kNever) {
    futex(word, FUTEX_WAIT_BITSET, expected, nullptr);
  } else {
    const timespec time = to_timespec(deadline_ns);
    futex(word, FUTEX_WAIT_BITSET, expected, &time);
  }
}

void wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  futex(word, FUTEX_WAKE, 1, nullptr);
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  futex(word, FUTEX_WAKE, INT_MAX, nullptr);
}

void Condition::wait_until(Lock& lock, std::int64_t deadline_ns) {
  if (deadline_ns == kNever) {
    condition_.wait(lock);
  } else {
    condition_.wait_until(
        lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)));
  }
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

FileWriter::FileWriter(const std::string& path) : path_(path) {
  struct stat status {};
  const bool plain = stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
  if (plain) {
    temporary_ = path + ".XXXXXX";
    descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ >= 0) fchmod(descriptor_, 0644);
  } else {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    give_up("open");
  }
  pending_.reserve(1 << 20);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::write(const void* data, std::size_t bytes) {
  const char* text = static_cast<const char*>(data);
  pending_.insert(pending_.end(), text, text + bytes);
  if (pending_.size() >= (1 << 20)) flush();
}

void FileWriter::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) give_up("write");
    done += static_cast<std::size_t>(written);
  }
  pending_.clear();
}

void FileWriter::commit() {
  flush();
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0) give_up("close");
  if (!temporary_.empty() && rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename");
  temporary_.clear();
}

void FileWriter::give_up(const char* verb) {
  const int reason = errno;
  fail(WEIR_STATUS_UNAVAILABLE, "cannot {} '{}': {}", verb, path_, std::strerror(reason));
}

std::uint64_t memory_bytes() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

const char* environment(const char* name) noexcept { return std::getenv(name); }

}  // namespace weir::rt::sys
