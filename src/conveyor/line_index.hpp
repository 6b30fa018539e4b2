// Finds repeated addresses in a block.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rt {

/// Maps addresses to their positions in an array: a four-way cache (paper 003, section 5.5). An
/// evicted address is only not found again; it stays in the array. Only the first 65,535 positions
/// of an array are noted: 16-bit entries halve the size of a set in the first-level cache.
class LineIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Allocates sets for arrays of up to `positions`. Throws std::bad_alloc.
  void reserve(std::size_t positions) { sets_.reserve(sets_for(positions)); }

  /// Forgets everything, and prepares for an array of up to `positions`.
  void reset(std::size_t positions) noexcept {
    const std::size_t sets = sets_for(positions);
    shift_ = 64 - std::countr_zero(sets);
    sets_.assign(sets, Set{});
  }

  /// Returns the position of an address, if it is `first` or later. Otherwise notes that the
  /// address will be at `next`, and returns kNone.
  std::uint32_t find_or_note(const std::uint64_t* addresses, std::uint64_t address,
                             std::uint32_t first, std::uint32_t next) noexcept {
    Set& set = sets_[(address * 0x9e3779b97f4a7c15) >> shift_];
    if (set[0] > first && addresses[set[0] - 1] == address) [[likely]]
      return set[0] - 1;
    for (const std::uint32_t entry : set) {
      if (entry > first && addresses[entry - 1] == address) return entry - 1;
    }
    if (next >= kNoted) return kNone;
    std::copy_backward(set.begin(), set.end() - 1, set.end());
    set[0] = static_cast<std::uint16_t>(next + 1);
    return kNone;
  }

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kNoted = UINT16_MAX;
  using Set = std::array<std::uint16_t, kWays>;  ///< position + 1, newest first; 0: empty

  static std::size_t sets_for(std::size_t positions) noexcept {
    return std::bit_ceil(std::clamp(positions, kWays, kNoted) / kWays) * 2;
  }

  std::vector<Set> sets_;
  int shift_ = 63;
};

}  // namespace weir::rt
