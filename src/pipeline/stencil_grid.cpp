#include "pipeline/stencil_grid.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostMatrixEdge = std::size_t{1} << 24, kMostTiles = std::size_t{1} << 26;

StencilShape checked_stencil(const StencilShape& shape, const std::string& name) {
  const auto check = [&](const char* what, std::size_t value, std::size_t most) {
    if (value == 0 || value > most) {
      fail_argument("{} {} of stencil '{}' must be 1 to {}", value, what, name, most);
    }
  };
  check("rows", shape.rows, kMostMatrixEdge);
  check("columns", shape.columns, kMostMatrixEdge);
  check("rows of a region", shape.region_rows, kMostMatrixEdge);
  check("columns of a region", shape.region_columns, kMostMatrixEdge);
  check("sweeps", shape.sweeps, kMostTiles);
  if (shape.halo > std::min(shape.region_rows, shape.region_columns)) {
    fail_argument(
        "halo {} of stencil '{}' is larger than its regions of {} x {}: choose larger ones",
        shape.halo, name, shape.region_rows, shape.region_columns);
  }
  const std::size_t regions =
      ((shape.rows - 1) / shape.region_rows + 1) * ((shape.columns - 1) / shape.region_columns + 1);
  if (regions > kMostTiles / shape.sweeps) {
    fail_argument("{} regions in {} sweeps are too many for stencil '{}': at most {} tiles",
                  regions, shape.sweeps, name, kMostTiles);
  }
  StencilShape fitting = shape;
  fitting.region_rows = std::min(shape.region_rows, shape.rows);
  fitting.region_columns = std::min(shape.region_columns, shape.columns);
  return fitting;
}

}  // namespace

StencilGrid::StencilGrid(const StencilShape& shape, const std::string& name)
    : shape_(checked_stencil(shape, name)),
      down_((shape.rows - 1) / shape.region_rows + 1),
      across_((shape.columns - 1) / shape.region_columns + 1),
      words_of_row_((shape_.region_columns - 1) / kBits + 1),
      missing_(std::make_unique<sys::Atomic<std::size_t>[]>(regions())),
      needs_(std::make_unique<sys::Atomic<std::uint32_t>[]>(regions() * shape.sweeps)),
      bits_(std::make_unique<sys::Atomic<Word>[]>(regions() * shape_.region_rows * words_of_row_)) {
  for (std::size_t region = 0; region < regions(); ++region) {
    const StencilPart part = part_of(region);
    missing_[region].store(part.rows * part.columns, std::memory_order_relaxed);
    std::uint32_t near = 0;
    each_near(region, [&](std::size_t) { ++near; });
    for (std::size_t sweep = 0; sweep < shape_.sweeps; ++sweep) {
      needs_[sweep * regions() + region].store(near, std::memory_order_relaxed);
    }
  }
}

StencilPart StencilGrid::part_of(std::size_t region) const noexcept {
  const std::size_t row = region / across_ * shape_.region_rows;
  const std::size_t column = region % across_ * shape_.region_columns;
  return {row, column, std::min(shape_.region_rows, shape_.rows - row),
          std::min(shape_.region_columns, shape_.columns - column)};
}

StencilPart StencilGrid::with_halo(std::size_t region) const noexcept {
  const StencilPart part = part_of(region);
  const std::size_t row = part.row - std::min(part.row, shape_.halo);
  const std::size_t column = part.column - std::min(part.column, shape_.halo);
  return {row, column, std::min(part.row + part.rows + shape_.halo, shape_.rows) - row,
          std::min(part.column + part.columns + shape_.halo, shape_.columns) - column};
}

template <class Visit>
void StencilGrid::each_word(std::size_t region, const StencilPart& values, Visit&& visit) const {
  const StencilPart part = part_of(region);
  const std::size_t first = values.column - part.column, end = first + values.columns;
  for (std::size_t r = 0; r < values.rows; ++r) {
    const std::size_t row = values.row - part.row + r;
    sys::Atomic<Word>* const words = &bits_[(region * shape_.region_rows + row) * words_of_row_];
    for (std::size_t at = first; at < end;) {
      const std::size_t bit = at % kBits, count = std::min(kBits - bit, end - at);
      visit(words[at / kBits], (~Word{0} >> (kBits - count)) << bit);
      at += count;
    }
  }
}

bool StencilGrid::any_set(std::size_t region, const StencilPart& values) const noexcept {
  bool found = false;
  each_word(region, values, [&](const sys::Atomic<Word>& word, Word mask) {
    found = found || (word.load(std::memory_order_relaxed) & mask) != 0;
  });
  return found;
}

/// The thread that sets the last value has acquired the values that all others have written.
std::size_t StencilGrid::set(std::size_t region, const StencilPart& values,
                             bool& complete) noexcept {
  std::size_t fresh = 0, again = 0;
  each_word(region, values, [&](sys::Atomic<Word>& word, Word mask) {
    const Word before = word.fetch_or(mask, std::memory_order_relaxed);
    fresh += static_cast<std::size_t>(std::popcount(mask & ~before));
    again += static_cast<std::size_t>(std::popcount(mask & before));
  });
  complete = fresh > 0 && missing_[region].fetch_sub(fresh, std::memory_order_acq_rel) == fresh;
  return again;
}

}  // namespace weir::rt
