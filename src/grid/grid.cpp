#include "grid/grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace weir::rt {

namespace {

constexpr std::size_t kMostCells = std::size_t{1} << 40;  ///< maximum in one dimension
constexpr std::size_t kMostBlocks = 1 << 14;
GridCell read_cells(const weir_grid_options& options) {
  GridCell cells{1, 1, 1};
  double all = 1;
  for (unsigned d = 0; d < options.dimensions; ++d) {
    if (options.cells[d] == 0 || options.cells[d] > kMostCells) {
      fail_argument("the grid has {} cells in {}: give it from 1 to {}", options.cells[d],
                    kDimensionNames[d], kMostCells);
    }
    cells[d] = static_cast<std::int64_t>(options.cells[d]);
    all *= static_cast<double>(options.cells[d]);
  }
  if (all > 0x1p62) fail_argument("the grid has {:.2g} cells: give it at most 2^62", all);
  return cells;
}

/// Returns the number of cell faces between blocks in the whole grid.
double surface(const GridCell& cells, const std::array<std::size_t, 3>& blocks) {
  double sum = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const double face =
        static_cast<double>(cells[(d + 1) % 3]) * static_cast<double>(cells[(d + 2) % 3]);
    sum += static_cast<double>(blocks[d] - 1) * face;
  }
  return sum;
}

/// Returns the block counts with the fewest cell faces between blocks; among equal ones, the one
/// with the fewest cuts in x, then in y.
std::array<std::size_t, 3> choose_blocks(const Partition& grid) {
  std::array<std::size_t, 3> best{};
  double least = std::numeric_limits<double>::infinity();
  const std::size_t n = grid.ranks;
  const auto fits = [&](std::size_t d, std::size_t blocks) {
    return blocks <= static_cast<std::size_t>(grid.cells[d]);
  };
  for (std::size_t x = 1; x <= n; ++x) {
    if (n % x != 0 || !fits(0, x)) continue;
    for (std::size_t y = 1; y <= n / x; ++y) {
      if (n / x % y != 0 || !fits(1, y) || !fits(2, n / x / y)) continue;
      const std::array<std::size_t, 3> blocks{x, y, n / x / y};
      const double faces = surface(grid.cells, blocks);
      if (faces >= least) continue;
      least = faces;
      best = blocks;
    }
  }
  if (best[0] == 0) {
    fail_argument("{} ranks do not get a block each of {} x {} x {} cells: give the blocks", n,
                  grid.cells[0], grid.cells[1], grid.cells[2]);
  }
  return best;
}

std::array<std::size_t, 3> read_blocks(const weir_grid_options& options, const Partition& grid) {
  std::array<std::size_t, 3> blocks{};
  for (unsigned d = 0; d < options.dimensions; ++d) blocks[d] = options.blocks[d];
  if (blocks == std::array<std::size_t, 3>{}) return choose_blocks(grid);
  std::size_t all = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    blocks[d] = std::max<std::size_t>(blocks[d], 1);
    if (blocks[d] > kMostBlocks || (all *= blocks[d]) > kMostBlocks) {
      fail_argument("the grid has more than {} blocks: choose larger ones", kMostBlocks);
    }
  }
  return blocks;
}

std::vector<GridBlock> cut_blocks(const weir_grid_options& options, const Partition& grid) {
  const std::array<std::size_t, 3> counts = read_blocks(options, grid);
  std::array<std::vector<std::int64_t>, 3> cuts;
  for (std::size_t d = 0; d < 3; ++d) {
    const double* const weights = d < grid.dimensions ? options.weights[d] : nullptr;
    cuts[d] = cut(grid.cells[d], counts[d], weights, kDimensionNames[d]);
  }
  std::vector<GridBlock> blocks;
  const std::size_t all = counts[0] * counts[1] * counts[2];
  for (std::size_t i = 0; i < all; ++i) {
    const std::array<std::size_t, 3> at{i % counts[0], i / counts[0] % counts[1],
                                        i / counts[0] / counts[1]};
    GridBlock block{};
    for (std::size_t d = 0; d < 3; ++d) {
      block.cells.begin[d] = cuts[d][at[d]];
      block.cells.end[d] = cuts[d][at[d] + 1];
    }
    block.rank =
        options.owners != nullptr ? options.owners[i] : static_cast<unsigned>(i * grid.ranks / all);
    blocks.push_back(block);
  }
  return blocks;
}

void check_tiling(const Partition& grid) {
  std::uint64_t covered = 0;
  for (std::size_t i = 0; i < grid.blocks.size(); ++i) {
    const GridRange& cells = grid.blocks[i].cells;
    const auto text = [&] { return to_text(cells, grid.dimensions); };
    if (weir_grid_range_is_empty(cells)) fail_argument("block {} has no cells: {}", i, text());
    const std::uint64_t inside =
        weir_grid_range_cells(weir_grid_range_intersect(cells, grid.all()));
    bool outside = false;
    for (std::size_t d = 0; d < 3; ++d) {
      outside = outside || cells.begin[d] < 0 || cells.end[d] > grid.cells[d];
    }
    if (outside) {
      fail_argument("block {}, {}, leaves the grid, {}", i, text(),
                    to_text(grid.all(), grid.dimensions));
    }
    covered += inside;
    for (std::size_t j = 0; j < i; ++j) {
      const GridRange both = weir_grid_range_intersect(cells, grid.blocks[j].cells);
      if (weir_grid_range_is_empty(both)) continue;
      fail_argument("blocks {} and {} do not tile the grid: both have {}", j, i,
                    to_text(both, grid.dimensions));
    }
  }
  const std::uint64_t all = weir_grid_range_cells(grid.all());
  if (covered != all) {
    fail_argument("the blocks do not tile the grid: they have {} of its {} cells", covered, all);
  }
}

}  // namespace

std::string to_text(const GridRange& range, unsigned dimensions) {
  std::string text;
  for (unsigned d = 0; d < dimensions; ++d) {
    text += fmt::format("{}[{}, {})", d > 0 ? " x " : "", range.begin[d], range.end[d]);
  }
  return text;
}

std::string to_text(const GridCell& cell, unsigned dimensions) {
  return fmt::format("({})", fmt::join(std::span(cell).first(dimensions), ", "));
}

std::vector<std::int64_t> cut(std::int64_t n, std::size_t parts, const double* weights,
                              char dimension) {
  double all = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const double weight = weights != nullptr ? weights[i] : 1;
    if (!(weight > 0) || !std::isfinite(weight)) {
      fail_argument("block {} of {} in {} has the weight {}: give it a positive one", i, parts,
                    dimension, weight);
    }
    all += weight;
  }
  std::vector<std::int64_t> ends{0};
  double sum = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    sum += weights != nullptr ? weights[i] : 1;
    const auto end = i + 1 == parts ? n : std::llround(static_cast<double>(n) * (sum / all));
    if (end <= ends.back() || end > n) {
      fail_argument("block {} of {} in {} gets none of {} cells: choose fewer blocks", i, parts,
                    dimension, n);
    }
    ends.push_back(end);
  }
  return ends;
}

Partition make_partition(const weir_grid_options& options) {
  if (options.dimensions != 2 && options.dimensions != 3) {
    fail_argument("a grid has 2 or 3 dimensions, not {}", options.dimensions);
  }
  if (options.ranks == 0) fail_argument("a grid needs at least one rank");
  Partition grid;
  grid.dimensions = options.dimensions;
  grid.ranks = options.ranks;
  grid.cells = read_cells(options);
  for (unsigned d = 0; d < grid.dimensions; ++d) grid.periodic[d] = options.periodic[d];
  if (options.list == nullptr) {
    grid.blocks = cut_blocks(options, grid);
  } else {
    if (options.list_count > kMostBlocks) {
      fail_argument("{} blocks are more than {}: choose larger ones", options.list_count,
                    kMostBlocks);
    }
    grid.blocks.assign(options.list, options.list + options.list_count);
    if (grid.dimensions == 2) {
      for (GridBlock& block : grid.blocks) {
        block.cells.begin[2] = 0;
        block.cells.end[2] = 1;
      }
    }
    check_tiling(grid);
  }
  for (std::size_t i = 0; i < grid.blocks.size(); ++i) {
    if (grid.blocks[i].rank < grid.ranks) continue;
    fail_argument("block {} belongs to rank {} of {}", i, grid.blocks[i].rank, grid.ranks);
  }
  return grid;
}

}  // namespace weir::rt
