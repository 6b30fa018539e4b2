#include "grid/grid.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_grid.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

weir_grid_options options_of(unsigned dimensions, std::array<std::size_t, 3> cells,
                             std::array<std::size_t, 3> blocks, unsigned ranks) {
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = dimensions;
  options.ranks = ranks;
  for (std::size_t d = 0; d < 3; ++d) {
    options.cells[d] = cells[d];
    options.blocks[d] = blocks[d];
  }
  return options;
}

std::string failure(const weir_grid_options& options) {
  return thrown_by<Error>([&] { make_partition(options); }, WEIR_STATUS_INVALID_ARGUMENT);
}

RC_GTEST_PROP(Grid, BlocksTileTheGrid, ()) {
  using rc::gen::inRange;
  weir_grid_options options = options_of(*inRange(2u, 4u), {}, {}, *inRange(1u, 9u));
  std::array<std::vector<double>, 3> weights;
  for (std::size_t d = 0; d < 3; ++d) {
    options.blocks[d] = *inRange<std::size_t>(1, 5);
    options.cells[d] = *inRange<std::size_t>(12, 30);
    if (*rc::gen::arbitrary<bool>()) continue;
    for (std::size_t i = 0; i < options.blocks[d]; ++i) weights[d].push_back(*inRange(2, 5));
    options.weights[d] = weights[d].data();
  }
  const Partition grid = make_partition(options);
  for_each_cell(grid.all(), [&](const Cell& cell) {
    int owners = 0;
    for (const GridBlock& block : grid.blocks) {
      owners += contains(block.cells, cell);
      RC_ASSERT(block.rank < options.ranks);
    }
    RC_ASSERT(owners == 1);
  });
}

TEST(Grid, CutsInProportionToTheWeights) {
  const double weights[] = {1, 2, 1};
  EXPECT_EQ(cut(100, 3, weights, 'x'), (std::vector<std::int64_t>{0, 25, 75, 100}));
  EXPECT_EQ(cut(7, 2, nullptr, 'x'), (std::vector<std::int64_t>{0, 4, 7}));
  EXPECT_EQ(cut(3, 3, nullptr, 'x'), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(Grid, ChoosesBlocksWithSmallFaces) {
  const auto counts = [](std::array<std::size_t, 3> cells, unsigned dimensions, unsigned ranks) {
    const Partition grid = make_partition(options_of(dimensions, cells, {}, ranks));
    std::array<std::size_t, 3> blocks{0, 0, 0};
    for (const GridBlock& block : grid.blocks) {
      const auto& begin = block.cells.begin;
      blocks[0] += begin[1] == 0 && begin[2] == 0;
      blocks[1] += begin[0] == 0 && begin[2] == 0;
      blocks[2] += begin[0] == 0 && begin[1] == 0;
    }
    return blocks;
  };
  using Counts = std::array<std::size_t, 3>;
  EXPECT_EQ(counts({64, 64, 64}, 3, 8), (Counts{2, 2, 2}));
  EXPECT_EQ(counts({64, 64, 64}, 3, 2), (Counts{1, 1, 2}));
  EXPECT_EQ(counts({64, 64, 0}, 2, 4), (Counts{2, 2, 1}));
  EXPECT_EQ(counts({1000, 10, 0}, 2, 4), (Counts{4, 1, 1}));
  EXPECT_EQ(counts({64, 64, 64}, 3, 7), (Counts{1, 1, 7}));
}

TEST(Grid, InvalidDimensionsCellsBlocksRanksOrWeights_AreRefused) {
  EXPECT_EQ(failure(options_of(4, {8, 8, 8}, {}, 1)), "a grid has 2 or 3 dimensions, not 4");
  EXPECT_EQ(failure(options_of(3, {8, 0, 8}, {}, 1)),
            "the grid has 0 cells in y: give it from 1 to 1099511627776");
  EXPECT_EQ(failure(options_of(2, {8, 8, 0}, {}, 0)), "a grid needs at least one rank");
  EXPECT_EQ(failure(options_of(2, {8, 8, 0}, {9, 1, 0}, 1)),
            "block 4 of 9 in x gets none of 8 cells: choose fewer blocks");
  EXPECT_EQ(failure(options_of(3, {2, 2, 2}, {}, 9)),
            "9 ranks do not get a block each of 2 x 2 x 2 cells: give the blocks");
  EXPECT_EQ(failure(options_of(3, {99, 99, 99}, {99, 99, 99}, 1)),
            "the grid has more than 16384 blocks: choose larger ones");
  const double weights[] = {1, -1};
  weir_grid_options options = options_of(2, {8, 8, 0}, {2, 1, 0}, 1);
  options.weights[0] = weights;
  EXPECT_EQ(failure(options), "block 1 of 2 in x has the weight -1: give it a positive one");
}

TEST(Grid, RefusesBlocksThatDoNotTile) {
  const auto with = [](std::vector<GridBlock> blocks) {
    weir_grid_options options = options_of(2, {8, 8, 0}, {}, 2);
    options.list = blocks.data();
    options.list_count = blocks.size();
    return failure(options);
  };
  const GridBlock left{{{0, 0, 0}, {4, 8, 1}}, 0}, right{{{4, 0, 0}, {8, 8, 1}}, 1};
  EXPECT_EQ(with({left, right}), "");
  EXPECT_EQ(with({left}), "the blocks do not tile the grid: they have 32 of its 64 cells");
  EXPECT_EQ(with({left, {{{3, 0, 0}, {8, 8, 1}}, 1}}),
            "blocks 0 and 1 do not tile the grid: both have [3, 4) x [0, 8)");
  EXPECT_EQ(with({left, {{{4, 0, 0}, {9, 8, 1}}, 1}}),
            "block 1, [4, 9) x [0, 8), leaves the grid, [0, 8) x [0, 8)");
  EXPECT_EQ(with({left, right, {{{4, 4, 0}, {4, 8, 1}}, 1}}),
            "block 2 has no cells: [4, 4) x [4, 8)");
  EXPECT_EQ(with({left, {right.cells, 2}}), "block 1 belongs to rank 2 of 2");
}

TEST(Grid, RangeFunctions_ComputeCellsFacesAndHalos) {
  const GridRange range{{2, 3, 4}, {10, 9, 8}};
  EXPECT_EQ(weir_grid_range_cells(range), 8u * 6 * 4);
  const std::int64_t width[3] = {1, 2, 2};
  const GridRange inner = weir_grid_range_shrink(range, width);
  EXPECT_TRUE(weir_grid_range_is_empty(inner));
  EXPECT_EQ(weir_grid_range_cells(inner), 0u);
  EXPECT_EQ(to_text(weir_grid_range_face(range, 1, 1, 2), 3), "[2, 10) x [7, 9) x [4, 8)");
  EXPECT_EQ(to_text(weir_grid_range_face(range, 0, -1, 1), 3), "[2, 3) x [3, 9) x [4, 8)");
  EXPECT_EQ(to_text(weir_grid_range_halo(range, 2, 1, 3), 3), "[2, 10) x [3, 9) x [8, 11)");
  EXPECT_EQ(to_text(weir_grid_range_halo(range, 2, -1, 3), 2), "[2, 10) x [3, 9)");
}

}  // namespace
}  // namespace weir::rt
