// When the cores of a place are expected to be free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rt {

/// The estimated completion time of each core of a place. A serial task goes to the core that is
/// free first, a parallel one to all of them. One thread at a time.
class CoreTimes {
 public:
  explicit CoreTimes(std::size_t cores) : free_ns_(cores, 0) {}

  /// Returns when the first core is free.
  std::int64_t first_free_ns() const noexcept { return free_ns_.front(); }
  /// Returns when all cores are free. O(cores).
  std::int64_t all_free_ns() const noexcept;
  /// Gives the first free core a task of `run_ns` that starts at `from_ns` or later. O(log cores).
  void occupy(std::int64_t from_ns, std::int64_t run_ns) noexcept;
  /// Gives all cores a task of `run_ns` that starts at `from_ns` or later. O(cores).
  void occupy_all(std::int64_t from_ns, std::int64_t run_ns) noexcept;

 private:
  std::vector<std::int64_t> free_ns_;  ///< a min-heap
};

}  // namespace weir::rt
