// When the cores of a place are expected to be free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rt {

/// The expected end of the work of each core of a place, which gives each task to the core that is
/// free first. One thread at a time.
class CoreTimes {
 public:
  explicit CoreTimes(std::size_t cores) : free_ns_(cores, 0) {}

  /// When the first core is free.
  std::int64_t first_free_ns() const noexcept { return free_ns_.front(); }
  /// Gives the first core that is free a task of so many ns, which begins at `from_ns` or later.
  /// Takes time logarithmic in the cores.
  void occupy(std::int64_t from_ns, std::int64_t run_ns) noexcept;

 private:
  std::vector<std::int64_t> free_ns_;  ///< a heap, the least one first
};

}  // namespace weir::rt
