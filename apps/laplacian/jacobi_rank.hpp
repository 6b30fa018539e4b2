// The sweeps of one rank of several, whose halos travel over the fabric.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weir/grid.hpp>

#include "laplacian/jacobi_blocks.hpp"

namespace weir::apps {

/// The parts of the time of a run, in seconds.
struct Breakdown {
  double compute = 0, communicate = 0, synchronise = 0;

  Breakdown& operator+=(const Breakdown& other) {
    compute += other.compute;
    communicate += other.communicate;
    synchronise += other.synchronise;
    return *this;
  }
};

using JacobiClock = std::chrono::steady_clock;

template <class T>
class JacobiRank {
 public:
  /// Collective: each rank passes its own blocks.
  JacobiRank(const JacobiBlocks<T>& blocks, const weir::Grid& grid, weir_fabric* fabric, bool check)
      : blocks_(blocks) {
    weir::HaloOptions options;
    for (const std::size_t d : {0u, 1u, 2u}) {
      options.width[d] = static_cast<std::size_t>(blocks.halo()[d]);
    }
    options.fields = {{sizeof(T), sizeof(T) == 4 ? "float" : "double"}};
    options.check = check;
    for (const std::size_t field : {0u, 1u}) {
      options.arrays.clear();
      options.locate = [&blocks, field](std::size_t number, std::size_t,
                                        const weir::GridRange::Cell& cell) -> const void* {
        for (const JacobiBlock<T>& block : blocks.all()) {
          if (block.number() == number) return block.find(field, cell);
        }
        return nullptr;
      };
      for (const JacobiBlock<T>& block : blocks.all()) options.arrays.push_back(block.array(field));
      halos_[field] = weir::Halo(fabric, grid, options);
    }
  }

  /// Makes sweeps of so many steps each, from the program's memory back to it. With `overlap`
  /// edges travel while the interior is made. Throws weir::Error{timeout} or {cancelled}.
  Breakdown run(const std::vector<std::int64_t>& sweeps, bool overlap,
                JacobiClock::time_point deadline, const std::atomic<bool>& cancelled) {
    deadline_ = deadline;
    const JacobiClock::time_point start = JacobiClock::now();
    blocks_.upload();
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      make((i + 1) % 2, sweeps[i], overlap, i + 1 < sweeps.size(), cancelled);
    }
    wait(blocks_.download(sweeps.size() % 2));
    Breakdown spent;
    for (const weir::Halo& halo : halos_) {
      const weir_halo_info info = halo.info();
      spent.communicate += static_cast<double>(info.send_ns) * 1e-9;
      spent.synchronise += static_cast<double>(info.wait_ns) * 1e-9;
    }
    const std::chrono::duration<double> all = JacobiClock::now() - start;
    spent.compute = all.count() - spent.communicate - spent.synchronise;
    return spent;
  }

 private:
  /// Makes a field, whose edges travel when there are `more` sweeps.
  void make(std::size_t next, std::int64_t count, bool overlap, bool more,
            const std::atomic<bool>& cancelled) {
    std::vector<weir::Event> events = blocks_.make_edges(next, count);
    if (!overlap) append(events, blocks_.make_interior(next, count));
    if (more) {
      append(events, blocks_.download_edges(next));
      wait(events);
    }
    // Before they leave: cores that do not send have work meanwhile.
    if (overlap) blocks_.make_interior(next, count);
    if (!more) return;
    halos_[next].start();
    finish(halos_[next], cancelled);
    blocks_.upload_halos(next);
  }

  /// Waits for the halo; checks `cancelled` periodically.
  void finish(const weir::Halo& halo, const std::atomic<bool>& cancelled) const {
    constexpr std::chrono::milliseconds kCheckEvery{100};
    for (;;) {
      if (cancelled) throw weir::Error(WEIR_STATUS_CANCELLED, "the exchange was cancelled");
      const weir_status status = weir_halo_finish(
          halo.handle(),
          std::chrono::nanoseconds(std::min<JacobiClock::duration>(kCheckEvery, left())).count());
      if (status != WEIR_STATUS_TIMEOUT || left() <= JacobiClock::duration::zero()) {
        return weir::check(status);
      }
    }
  }

  static void append(std::vector<weir::Event>& all, const std::vector<weir::Event>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }
  void wait(const std::vector<weir::Event>& events) const {
    for (const weir::Event& event : events) event.wait(left());
  }
  JacobiClock::duration left() const {
    return std::max(deadline_ - JacobiClock::now(), JacobiClock::duration::zero());
  }

  const JacobiBlocks<T>& blocks_;
  std::array<weir::Halo, 2> halos_;  ///< of each field
  JacobiClock::time_point deadline_;
};

}  // namespace weir::apps
