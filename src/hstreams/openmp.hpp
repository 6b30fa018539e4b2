// The OpenMP runtime of the program, if it has one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

namespace weir::hs {

/// The number of threads of an OpenMP region on the calling thread; 0 without OpenMP.
int openmp_threads();
void set_openmp_threads(int count);
bool has_openmp();
/// Runs an empty region on the calling thread, so that its later regions find their threads
/// started. Does nothing without OpenMP.
void start_openmp_team();

/// Makes OpenMP count threads that are not its own.
///
/// Threads of GNU's OpenMP that wait for their next region poll for milliseconds; if OpenMP counts
/// more threads than processors, for microseconds. It does not count the workers of streams, which
/// are bound to the processors that its threads poll on. A census is a team of as many sleeping
/// OpenMP threads, so that the sum is right. Other runtimes have a function for this purpose,
/// kmp_set_blocktime(), which is called instead for the calling thread. If OMP_WAIT_POLICY,
/// GOMP_SPINCOUNT or KMP_BLOCKTIME is set, the census does nothing.
class OpenMpCensus {
 public:
  OpenMpCensus() = default;
  OpenMpCensus(const OpenMpCensus&) = delete;
  OpenMpCensus& operator=(const OpenMpCensus&) = delete;
  ~OpenMpCensus();

  /// Adds threads, up to one for each processor in all. Returns when OpenMP counts them. One call
  /// at a time.
  void add(std::size_t threads);

 private:
  void hold_team();

  std::optional<int> blocktime_ms_;  // the program's value
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = 0, counted_ = 0;
  bool stopped_ = false;
  std::thread holder_;
};

}  // namespace weir::hs
