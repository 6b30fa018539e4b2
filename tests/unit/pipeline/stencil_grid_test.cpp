// Regions and tiles of a stencil: each complete, and ready, once.
#include "pipeline/stencil_grid.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

std::size_t count_of(const StencilPart& part) { return part.rows * part.columns; }

TEST(StencilGrid, RegionsCoverTheMatrixOnce) {
  const StencilGrid grid({100, 70, 32, 24, 2, false, 1}, "s");
  std::vector<int> seen(100 * 70, 0);
  for (std::size_t region = 0; region < grid.regions(); ++region) {
    const StencilPart part = grid.part_of(region);
    EXPECT_EQ(grid.missing(region), count_of(part));
    for (std::size_t r = part.row; r < part.row + part.rows; ++r) {
      for (std::size_t c = part.column; c < part.column + part.columns; ++c) {
        ++seen[r * 70 + c];
        EXPECT_EQ(grid.region_at(r, c), region);
      }
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100 * 70);
}

TEST(StencilGrid, RegionsAreNotLargerThanTheMatrix) {
  const StencilGrid grid({30, 20, std::size_t{1} << 24, std::size_t{1} << 24, 1, false, 3}, "s");
  EXPECT_EQ(grid.regions(), 1u);
  EXPECT_EQ(grid.shape().region_rows, 30u);
  EXPECT_EQ(grid.shape().region_columns, 20u);
  EXPECT_EQ(grid.missing(0), 600u);
}

TEST(StencilGrid, TheLastValueCompletesARegion) {
  StencilGrid grid({70, 200, 40, 130, 1, false, 1}, "s");
  for (std::size_t region = 0; region < grid.regions(); ++region) {
    const StencilPart part = grid.part_of(region);
    std::size_t completed = 0;
    for (std::size_t r = 0; r < part.rows; ++r) {
      for (std::size_t c = 0; c < part.columns; c += 7) {
        const StencilPart some{part.row + r, part.column + c, 1,
                               std::min<std::size_t>(7, part.columns - c)};
        EXPECT_FALSE(grid.any_set(region, some));
        bool complete = false;
        EXPECT_EQ(grid.set(region, some, complete), 0u);
        EXPECT_TRUE(grid.any_set(region, some));
        completed += complete;
      }
    }
    EXPECT_EQ(completed, 1u);
    bool complete = false;
    EXPECT_EQ(grid.set(region, part, complete), count_of(part));
    EXPECT_FALSE(complete);
  }
}

/// Whatever the order in which things arrive, each tile is ready once, after all that it needs.
TEST(StencilGrid, RandomOrder_EachTileIsReadyOnceAfterItsNeighbours) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::uint64_t state = seed;
    const auto below = [&](std::size_t limit) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::size_t>(state >> 33) % limit;
    };
    const StencilShape shape{1 + below(40), 1 + below(40), 3 + below(6), 3 + below(6),
                             below(4),      below(2) == 0, 1 + below(4)};
    StencilGrid grid(shape, "s");
    std::map<std::pair<std::size_t, std::size_t>, bool> arrived;  // sweep, tile
    std::vector<std::pair<std::size_t, std::size_t>> ready;
    for (std::size_t r = 0; r < grid.regions(); ++r) ready.emplace_back(0, r);
    std::size_t steps = 0;
    while (!ready.empty()) {
      const std::size_t at = below(ready.size());
      const auto [sweep, tile] = ready[at];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
      ++steps;
      ASSERT_TRUE(arrived.emplace(std::pair{sweep, tile}, true).second) << "twice, seed " << seed;
      if (sweep > 0) {
        const StencilPart part = grid.part_of(tile), around = grid.with_halo(tile);
        for (std::size_t r = around.row; r < around.row + around.rows; ++r) {
          for (std::size_t c = around.column; c < around.column + around.columns; ++c) {
            const bool beside = (r < part.row || r >= part.row + part.rows) &&
                                (c < part.column || c >= part.column + part.columns);
            if (beside && !shape.corners) continue;
            ASSERT_TRUE(arrived.contains({sweep - 1, grid.region_at(r, c)})) << "seed " << seed;
          }
        }
      }
      grid.arrived(tile, sweep,
                   [&, s = sweep + 1](std::size_t next) { ready.emplace_back(s, next); });
    }
    EXPECT_EQ(steps, grid.regions() * (shape.sweeps + 1)) << "seed " << seed;
  }
}

TEST(StencilGrid, InvalidShape_IsRefusedWithTheReason) {
  const auto message = [](const StencilShape& shape) {
    return thrown_by<Error>([&] { StencilGrid(shape, "s"); });
  };
  EXPECT_NE(message({0, 5, 4, 4, 1, false, 1}).find("0 rows"), std::string::npos);
  EXPECT_NE(message({9, 9, 4, 4, 5, false, 1}).find("halo 5"), std::string::npos);
  EXPECT_NE(message({9, 9, 4, 4, 1, false, 0}).find("0 sweeps"), std::string::npos);
  EXPECT_NE(message({1 << 20, 1 << 20, 1, 1, 1, false, 1}).find("too many"), std::string::npos);
}

}  // namespace
}  // namespace weir::rt
