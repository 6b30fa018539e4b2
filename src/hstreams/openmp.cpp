#include "hstreams/openmp.hpp"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <system_error>

#include <dlfcn.h>

namespace weir::hs {

namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// Runs an empty region of `threads` threads, 0: the number of the calling thread's regions. The
/// function is from GNU's OpenMP; other runtimes have it, too.
void run_region(unsigned threads) {
  using Fork = void(void (*)(void*), void*, unsigned, unsigned);
  const auto fork = find<Fork>("GOMP_parallel");
  if (fork != nullptr) fork([](void*) {}, nullptr, threads, 0);
}

bool user_chose_waits() {
  const std::initializer_list<const char*> names = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
                                                    "KMP_BLOCKTIME"};
  return std::any_of(names.begin(), names.end(),
                     [](const char* name) { return secure_getenv(name) != nullptr; });
}

}  // namespace

int openmp_threads() {
  const auto ask = find<int()>("omp_get_max_threads");
  return ask != nullptr ? ask() : 0;
}

void set_openmp_threads(int count) {
  const auto set = find<void(int)>("omp_set_num_threads");
  if (set != nullptr) set(count);
}

bool has_openmp() { return find<int()>("omp_get_max_threads") != nullptr; }

void start_openmp_team() { run_region(0); }

OpenMpCensus::~OpenMpCensus() {
  if (blocktime_ms_) find<void(int)>("kmp_set_blocktime")(*blocktime_ms_);
  if (!holder_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  holder_.join();
}

void OpenMpCensus::add(std::size_t threads) {
  if (!has_openmp() || user_chose_waits()) return;
  if (const auto set_ms = find<void(int)>("kmp_set_blocktime")) {
    if (!blocktime_ms_) blocktime_ms_ = find<int()>("kmp_get_blocktime")();
    return set_ms(0);
  }
  const auto processors = static_cast<std::size_t>(find<int()>("omp_get_num_procs")());
  std::unique_lock lock(mutex_);
  const std::size_t wanted = std::min(wanted_ + threads, processors);
  if (wanted == wanted_) return;
  if (!holder_.joinable()) {
    try {
      holder_ = std::thread([this] { hold_team(); });
    } catch (const std::system_error&) {  // without the thread, programs are only slower
      return;
    }
  }
  wanted_ = wanted;
  changed_.notify_all();
  changed_.wait(lock, [this] { return counted_ == wanted_; });
}

/// The main function of the thread that has the team; OpenMP ends the team when this thread ends.
void OpenMpCensus::hold_team() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (counted_ < wanted_) {
      run_region(static_cast<unsigned>(wanted_ + 1));  // this thread itself does not count
      counted_ = wanted_;
      changed_.notify_all();
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace weir::hs
