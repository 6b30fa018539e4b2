// Tracks which regions of a matrix are complete and which tiles can be computed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/threads.hpp"

namespace weir::rt {

/// The matrix and the sweeps of a stencil. Sizes are in values.
struct StencilShape {
  std::size_t rows, columns;
  std::size_t region_rows, region_columns;
  std::size_t halo;  ///< values on each side that a value depends on
  bool corners;      ///< diagonal neighbours, too
  std::size_t sweeps;
};

/// A rectangle of values of the matrix.
struct StencilPart {
  std::size_t row, column, rows, columns;
};

/// Counts down instead of polling: exactly one thread, the one that sets the last value of a
/// region, finds it complete; exactly one thread, the one whose tile is the last that a tile needs,
/// finds that tile ready.
///
/// A tile is a region in one sweep. A tile of sweep s + 1 needs the tiles of sweep s that its
/// stencil reads, its own included; sweep 0 is the values that were set. When sweeps alternate
/// between two matrices, these are also the tiles that last read the memory that it overwrites.
class StencilGrid {
 public:
  /// Throws Error for an invalid shape, with the name of the stencil.
  StencilGrid(const StencilShape& shape, const std::string& name);

  const StencilShape& shape() const noexcept { return shape_; }
  std::size_t regions() const noexcept { return down_ * across_; }
  std::size_t region_at(std::size_t row, std::size_t column) const noexcept {
    return row / shape_.region_rows * across_ + column / shape_.region_columns;
  }
  /// The values of a region, clipped to the matrix.
  StencilPart part_of(std::size_t region) const noexcept;
  /// part_of() with its halo, clipped to the matrix.
  StencilPart with_halo(std::size_t region) const noexcept;

  /// Marks values of one region as set. Returns how many of them were already set; then it marks
  /// none. Sets `complete` if the region has all its values now.
  std::size_t set(std::size_t region, const StencilPart& values, bool& complete) noexcept;
  /// Whether some of these values of one region are set.
  bool any_set(std::size_t region, const StencilPart& values) const noexcept;
  std::size_t missing(std::size_t region) const noexcept {
    return missing_[region].load(std::memory_order_acquire);
  }

  /// Marks a tile of a sweep as computed. Calls ready(tile) for each tile of the next sweep that
  /// has all its inputs now.
  template <class Ready>
  void arrived(std::size_t tile, std::size_t sweep, Ready&& ready) {
    if (sweep == shape_.sweeps) return;
    each_near(tile, [&](std::size_t next) {
      if (needs_[sweep * regions() + next].fetch_sub(1, std::memory_order_acq_rel) == 1) {
        ready(next);
      }
    });
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::size_t kBits = 64;

  template <class Visit>
  void each_near(std::size_t tile, Visit&& visit) const {
    const std::size_t row = tile / across_, column = tile % across_;
    for (std::size_t r = row > 0 ? row - 1 : 0; r <= row + 1 && r < down_; ++r) {
      for (std::size_t c = column > 0 ? column - 1 : 0; c <= column + 1 && c < across_; ++c) {
        const bool diagonal = r != row && c != column;
        const bool neighbour = r != row || c != column;
        if ((diagonal && !shape_.corners) || (neighbour && shape_.halo == 0)) continue;
        visit(r * across_ + c);
      }
    }
  }
  /// Calls visit(word, mask) for the bits of some values.
  template <class Visit>
  void each_word(std::size_t region, const StencilPart& values, Visit&& visit) const;

  const StencilShape shape_;
  const std::size_t down_, across_;                      ///< regions
  const std::size_t words_of_row_;                       ///< of a region
  std::unique_ptr<sys::Atomic<std::size_t>[]> missing_;  ///< values, by region
  std::unique_ptr<sys::Atomic<std::uint32_t>[]> needs_;  ///< tiles, by sweep - 1 and tile
  std::unique_ptr<sys::Atomic<Word>[]> bits_;            ///< values that are set
};

}  // namespace weir::rt
