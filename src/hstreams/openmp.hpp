// OpenMP of the program, if it has one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

namespace weir::hs {

/// The threads that OpenMP takes for a region on the calling thread; 0 without OpenMP.
int openmp_threads();
void set_openmp_threads(int count);
bool has_openmp();
/// Runs an empty region on the calling thread, whose later regions find their threads there. Does
/// nothing without OpenMP.
void start_openmp_team();

/// Tells OpenMP of threads that are not its own.
///
/// Threads of GNU's OpenMP that wait for their next region poll for milliseconds, unless it counts
/// more threads than there are processors: then for microseconds. It does not count the workers of
/// streams, which are bound to the processors that it polls on. A census is a team of that many
/// threads of OpenMP, which sleep, so that the sum is right. Other runtimes have a function for it,
/// kmp_set_blocktime(), which is called instead for the calling thread. A program that is run with
/// OMP_WAIT_POLICY, GOMP_SPINCOUNT or KMP_BLOCKTIME has said what it wants: nothing is done.
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

  std::optional<int> blocktime_ms_;  // as the program had it
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = 0, counted_ = 0;
  bool over_ = false;
  std::thread holder_;
};

}  // namespace weir::hs
