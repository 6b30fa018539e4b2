// Where the same address was put before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rt {

/// Positions of addresses in an array of theirs: a cache of four ways, after paper 003, 5.5. What a
/// full set loses is only not found again: nothing has to leave the array. Of a long array only the
/// first 65,535 positions are noted: half a set in the core's nearest cache is worth more.
class LineIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Makes room for so many positions. Throws std::bad_alloc.
  void reserve(std::size_t positions) { sets_.reserve(sets_for(positions)); }

  /// Forgets everything, and prepares for up to as many positions.
  void reset(std::size_t positions) noexcept {
    const std::size_t sets = sets_for(positions);
    shift_ = 64 - std::countr_zero(sets);
    sets_.assign(sets, Set{});
  }

  /// Returns the position from `first` on where an address is. Otherwise notes that it will be at
  /// `next`, and returns kNone.
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
  using Set = std::array<std::uint16_t, kWays>;  ///< position + 1, the newest first; 0: none

  static std::size_t sets_for(std::size_t positions) noexcept {
    return std::bit_ceil(std::clamp(positions, kWays, kNoted) / kWays) * 2;
  }

  std::vector<Set> sets_;
  int shift_ = 63;
};

}  // namespace weir::rt
