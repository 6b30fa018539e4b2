// What all pipelines of this folder do: items of 32 bytes, work that takes a given time, the sums
// that prove that nothing was lost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "common/program.hpp"

namespace weir_bench {

struct Item {
  std::uint64_t value;
  std::uint64_t rest[3];
};

/// Keeps a core busy for so many nanoseconds, by counting.
class Work {
 public:
  explicit Work(long nanoseconds) : turns_(nanoseconds > 0 ? turns_for(nanoseconds) : 0) {}

  Item operator()(Item item) const {
    item.rest[0] += spin(turns_);
    return item;
  }

 private:
  static std::uint64_t spin(long turns) {
    std::uint64_t x = 1;
    for (long i = 0; i < turns; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      asm volatile("" : "+r"(x));
    }
    return x;
  }
  static long turns_for(long nanoseconds) {
    constexpr long kTurns = 1'000'000;
    double best = 1e9;
    for (int round = 0; round < 7; ++round) best = std::min(best, time_of([] { spin(kTurns); }));
    return static_cast<long>(static_cast<double>(nanoseconds) * 1e-9 / best * kTurns);
  }

  long turns_;
};

/// Items that arrived, counted by each worker for itself.
class Totals {
 public:
  void add(std::size_t worker, const Item& item) {
    Part& part = parts_.at(worker);
    ++part.count;
    part.sum += item.value;
  }
  /// Throws unless the items and the sum of their values are these.
  void check(std::uint64_t count, std::uint64_t sum) const {
    std::uint64_t counted = 0, summed = 0;
    for (const Part& part : parts_) {
      counted += part.count;
      summed += part.sum;
    }
    if (counted != count || summed != sum) throw std::runtime_error("items were lost");
  }

 private:
  struct alignas(64) Part {
    std::uint64_t count = 0, sum = 0;
  };
  std::array<Part, 256> parts_;
};

/// When the last item was through, and when the call returned that waits for it.
struct End {
  std::atomic<double> last{0};
  double returned = 0;

  double latency() const { return returned - last; }
};
/// Calls run(end); returns the microseconds from the last item to its end.
template <class Run>
double end_us(const Run& run) {
  End end;
  run(end);
  return end.latency() * 1e6;
}
inline constexpr std::uint64_t kItemsBeforeEnd = 20'000;
inline constexpr long kEnds = 51;  ///< that are measured: an end is short

inline constexpr std::uint64_t kRoots = 64, kDepth = 13;
inline constexpr std::uint64_t kLeaves = kRoots << kDepth;
inline constexpr std::uint64_t kTasks = kRoots * ((std::uint64_t{2} << kDepth) - 1);

/// So many items that a run takes about a fifth of a second.
inline std::uint64_t linear_items(long work_ns) {
  return static_cast<std::uint64_t>(work_ns > 0 ? 200'000'000 / work_ns : 8'000'000);
}

}  // namespace weir_bench
