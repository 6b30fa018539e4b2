// Grids divided into blocks that belong to ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/grid.h>

#include "base/error.hpp"

namespace weir::rt {

using GridRange = weir_grid_range;
using GridBlock = weir_grid_block;
using GridCell = std::array<std::int64_t, 3>;

/// Names of the dimensions in messages.
inline constexpr std::array<char, 3> kDimensionNames = {'x', 'y', 'z'};

/// Returns "[0, 4) x [2, 3)".
std::string to_text(const GridRange& range, unsigned dimensions);
/// Returns "(3, 0)".
std::string to_text(const GridCell& cell, unsigned dimensions);

/// The cells of a grid and its blocks.
struct Partition {
  unsigned dimensions = 3, ranks = 1;
  GridCell cells{1, 1, 1};
  std::array<bool, 3> periodic{};
  std::vector<GridBlock> blocks;

  GridRange all() const noexcept { return {{0, 0, 0}, {cells[0], cells[1], cells[2]}}; }
};

/// Divides a grid according to the options. Throws Error.
Partition make_partition(const weir_grid_options& options);

/// Divides n cells into parts in proportion to weights (null: equal), at least one cell each.
/// Returns the begin of each part and the end of the last one. Throws Error that names the
/// dimension.
std::vector<std::int64_t> cut(std::int64_t n, std::size_t parts, const double* weights,
                              char dimension);

}  // namespace weir::rt
