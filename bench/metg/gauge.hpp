// Notices that something else had a core: another process, or the machine below this one.
#pragma once

#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <sched.h>

#include "common/program.hpp"

namespace weir_bench::metg {

/// Returns the cores that this thread may use.
inline std::vector<std::size_t> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

/// Binds this thread to one core.
inline void bind_to(std::size_t core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// Threads, one bound to each core, that run a loop now and then and sleep otherwise.
class CoreThreads {
 public:
  explicit CoreThreads(const std::vector<std::size_t>& cores) : size_(cores.size()) {
    for (std::size_t index = 0; index < size_; ++index) {
      threads_.emplace_back([this, index, core = cores[index]] {
        bind_to(core);
        serve(index);
      });
    }
  }
  ~CoreThreads() {
    start(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }
  CoreThreads(const CoreThreads&) = delete;
  CoreThreads& operator=(const CoreThreads&) = delete;

  std::size_t size() const { return size_; }

  /// Calls work(index) on all threads at once and returns when all have returned.
  template <class Function>
  void run(Function&& work) {
    const std::function<void(std::size_t)> called = std::ref(work);
    start(&called);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void start(const std::function<void(std::size_t)>* work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = work;
      running_ = size_;
      ++round_;
    }
    started_.notify_all();
  }

  void serve(std::size_t index) {
    for (std::size_t seen = 0;;) {
      const std::function<void(std::size_t)>* work = nullptr;
      {
        std::unique_lock lock(mutex_);
        started_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        work = work_;
      }
      if (work == nullptr) return;
      (*work)(index);
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) finished_.notify_one();
    }
  }

  std::size_t size_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t running_ = 0, round_ = 0;
  std::vector<std::thread> threads_;
};

/// A sample counts when no core has lost more than this part of its time before or after it.
inline constexpr double largest_loss = 0.1;

/// Occupies all cores for a few milliseconds and measures which part of them this process did not
/// get. Threads of this process that still spin do not count as a loss. Other processes do, and so
/// do gaps in the clock of a thread that the system believes to be running: the machine had no
/// core.
class Gauge {
 public:
  explicit Gauge(const std::vector<std::size_t>& cores) : threads_(cores), gaps_(cores.size()) {}

  /// Returns the lost part, 0 to 1, of the core that lost most.
  double lost_part() {
    const double start = now(), end = start + window_s;
    const double used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    threads_.run([&](std::size_t index) { gaps_[index] = gaps_until(end); });
    const double wanted = (now() - start) * static_cast<double>(threads_.size());
    const double others = wanted - (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    const double gaps = *std::max_element(gaps_.begin(), gaps_.end());
    return std::max(others, gaps) / window_s;
  }

 private:
  static constexpr double window_s = 4e-3;
  static constexpr double gap_s = 20e-6;

  static double clock_seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  /// Returns the seconds of the gaps during which the system counted this thread as running.
  static double gaps_until(double end) {
    double gaps = 0, last = now(), last_used = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    while (last < end) {
      const double time = now(), used = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
      if (time - last > gap_s) gaps += std::max(used - last_used - gap_s, 0.0);
      last = time;
      last_used = used;
    }
    return gaps;
  }

  CoreThreads threads_;
  std::vector<double> gaps_;
};

}  // namespace weir_bench::metg
