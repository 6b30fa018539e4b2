// StencilGrid: the thread that brings the last of what a region or a tile needs sees all of it.
#include "pipeline/stencil_grid.hpp"

#include <algorithm>

#include "base/plain.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Each writer sets one value of a region; the last one reads them all.
template <int kWriters>
struct Values : Check<Values<kWriters>, kWriters> {
  StencilGrid grid{StencilShape{kWriters, 1, kWriters, 1, 0, false, 1}, "s"};
  sys::Plain<int> values[kWriters];
  sys::Atomic<int> completed{0};

  void thread(unsigned index) {
    values[index] = 1;
    bool complete = false;
    CHECK_THAT(grid.set(0, {index, 0, 1, 1}, complete) == 0);
    if (!complete) return;
    int sum = 0;
    for (const auto& value : values) sum += static_cast<int>(value);
    CHECK_THAT(sum == kWriters);
    completed.fetch_add(1, std::memory_order_relaxed);
  }
  void after() { CHECK_THAT(completed.load(std::memory_order_relaxed) == 1); }
};

/// Tiles of sweeps that alternate between two matrices, one thread for each region that is set.
template <int kTiles, int kSweeps>
struct Sweeps : Check<Sweeps<kTiles, kSweeps>, kTiles> {
  StencilGrid grid{StencilShape{kTiles, 1, 1, 1, 1, false, kSweeps}, "s"};
  sys::Plain<int> values[2][kTiles];
  sys::Atomic<int> made{0};

  void thread(unsigned index) { make(index, 0); }
  void make(std::size_t tile, std::size_t sweep) {
    int value = 1;
    if (sweep > 0) {
      value = sum_near(tile, [&](std::size_t at) -> int { return values[(sweep - 1) % 2][at]; });
    }
    CHECK_THAT(value == wanted(tile, sweep));
    values[sweep % 2][tile] = value;
    if (sweep == kSweeps) made.fetch_add(1, std::memory_order_relaxed);
    grid.arrived(tile, sweep, [&](std::size_t next) { make(next, sweep + 1); });
  }
  void after() { CHECK_THAT(made.load(std::memory_order_relaxed) == kTiles); }

  template <class ValueAt>
  static int sum_near(std::size_t tile, ValueAt&& value_at) {
    int sum = 0;
    const std::size_t end = std::min<std::size_t>(tile + 2, kTiles);
    for (std::size_t at = tile > 0 ? tile - 1 : 0; at < end; ++at) sum += value_at(at);
    return sum;
  }
  static int wanted(std::size_t tile, std::size_t sweep) {
    if (sweep == 0) return 1;
    return sum_near(tile, [&](std::size_t at) { return wanted(at, sweep - 1); });
  }
};

}  // namespace

void check_stencil(Run& run) {
  run.bounded<Values<2>>("two values", 4);
  run.random<Values<3>>("three values");
  run.bounded<Sweeps<2, 2>>("two tiles in two sweeps", 3);
  run.random<Sweeps<3, 3>>("three tiles in three sweeps", 2);
}

}  // namespace weir::rt::checker
