// Random grids, blocks and halos, and what must be in every cell of a halo.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "grid/grid.hpp"
#include "grid/halo_plan.hpp"

namespace weir::rt {

using Cell = GridCell;

/// Calls visit(cell) for each cell of a range.
template <class Visit>
void for_each_cell(const GridRange& range, const Visit& visit) {
  for (std::int64_t z = range.begin[2]; z < range.end[2]; ++z) {
    for (std::int64_t y = range.begin[1]; y < range.end[1]; ++y) {
      for (std::int64_t x = range.begin[0]; x < range.end[0]; ++x) visit(Cell{x, y, z});
    }
  }
}

inline bool contains(const GridRange& range, const Cell& cell) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (cell[d] < range.begin[d] || cell[d] >= range.end[d]) return false;
  }
  return true;
}

/// Cuts a range into boxes of any shape, none narrower than `least`.
inline void cut_anyhow(const GridRange& range, const Cell& least, int depth,
                       std::vector<GridBlock>& blocks) {
  const auto d = *rc::gen::inRange<std::size_t>(0, 3);
  const std::int64_t extent = range.end[d] - range.begin[d];
  const std::int64_t narrowest = std::max<std::int64_t>(least[d], 1);
  if (depth == 0 || extent < 2 * narrowest) {
    blocks.push_back({range, 0});
    return;
  }
  const auto at = range.begin[d] + *rc::gen::inRange(narrowest, extent - narrowest + 1);
  GridRange low = range, high = range;
  low.end[d] = high.begin[d] = at;
  cut_anyhow(low, least, depth - 1, blocks);
  cut_anyhow(high, least, depth - 1, blocks);
}

struct RandomGrid {
  Partition grid;
  HaloShape shape;
  std::vector<std::size_t> element_bytes;
};

inline RandomGrid random_grid(unsigned ranks) {
  using rc::gen::inRange;
  RandomGrid random;
  random.shape.corners = *rc::gen::arbitrary<bool>();
  const auto dimensions = *inRange(2u, 4u);
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = dimensions;
  options.ranks = ranks;
  for (std::size_t d = 0; d < dimensions; ++d) {
    random.shape.width[d] = *inRange<std::int64_t>(0, 4);
    options.cells[d] = *inRange<std::size_t>(4, 15);
    options.periodic[d] = *rc::gen::arbitrary<bool>();
  }
  if (dimensions == 2) random.shape.width[2] = 0;
  const Cell extent{static_cast<std::int64_t>(options.cells[0]),
                    static_cast<std::int64_t>(options.cells[1]),
                    dimensions == 3 ? static_cast<std::int64_t>(options.cells[2]) : 1};
  std::vector<GridBlock> blocks;
  cut_anyhow({{0, 0, 0}, {extent[0], extent[1], extent[2]}}, random.shape.width, *inRange(0, 5),
             blocks);
  for (GridBlock& block : blocks) block.rank = *inRange(0u, ranks);
  options.list = blocks.data();
  options.list_count = blocks.size();
  random.grid = make_partition(options);
  const auto fields = *inRange<std::size_t>(1, 4);
  for (std::size_t i = 0; i < fields; ++i) {
    random.element_bytes.push_back(*rc::gen::element<std::size_t>(1, 2, 4, 8, 12, 16, 24, 400));
  }
  return random;
}

/// The fields of one rank's blocks, with halos and gaps. A cell holds bytes that follow from
/// its coordinates and a step; halos hold 0xee.
class RankMemory {
 public:
  RankMemory(const RandomGrid& random, Rank rank) : random_(random), rank_(rank) {
    for (const std::size_t bytes : random.element_bytes) fields_.push_back({bytes, nullptr});
    for (std::size_t i = 0; i < random.grid.blocks.size(); ++i) {
      if (random.grid.blocks[i].rank != rank) continue;
      for (std::size_t field = 0; field < fields_.size(); ++field) add(i, field);
    }
  }

  const std::vector<weir_halo_field>& fields() const { return fields_; }
  const std::vector<weir_grid_array>& arrays() const { return arrays_; }

  void fill(std::uint64_t step) {
    for_each([&](std::size_t block, std::size_t field, const Cell& cell, std::byte* at) {
      const std::size_t bytes = random_.element_bytes[field];
      if (contains(random_.grid.blocks[block].cells, cell)) {
        write(cell, field, step, bytes, at);
      } else {
        std::memset(at, 0xee, bytes);
      }
    });
  }

  /// Changes all cells of the blocks, and makes them again, without a look at the halos.
  void spoil() {
    for_each_own([](const Cell&, std::size_t, std::size_t bytes, std::byte* at) {
      std::memset(at, 0x11, bytes);
    });
  }
  void restore(std::uint64_t step) {
    for_each_own([&](const Cell& cell, std::size_t field, std::size_t bytes, std::byte* at) {
      write(cell, field, step, bytes, at);
    });
  }

  /// Returns the first cell of a halo that does not hold what it must.
  std::optional<std::string> wrong(std::uint64_t step) const {
    std::optional<std::string> found;
    for_each([&](std::size_t block, std::size_t field, const Cell& cell, const std::byte* at) {
      const std::size_t bytes = random_.element_bytes[field];
      std::vector<std::byte> expected(bytes, std::byte{0xee});
      if (const std::optional<Cell> source = source_of(block, cell)) {
        write(*source, field, step, bytes, expected.data());
      }
      if (found || std::memcmp(at, expected.data(), bytes) == 0) return;
      found =
          fmt::format("rank {} block {} field {} cell {}", rank_, block, field, to_text(cell, 3));
    });
    return found;
  }

 private:
  static void write(const Cell& cell, std::size_t field, std::uint64_t step, std::size_t bytes,
                    std::byte* at) {
    std::uint64_t state = static_cast<std::uint64_t>(cell[0] + 64 * (cell[1] + 64 * cell[2])) +
                          (field << 20) + (step << 24);
    for (std::size_t i = 0; i < bytes; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      at[i] = static_cast<std::byte>(state >> 56);
    }
  }

  GridRange room(std::size_t block) const {
    const Cell& width = random_.shape.width;
    const Cell grown{-width[0], -width[1], -width[2]};
    return weir_grid_range_shrink(random_.grid.blocks[block].cells, grown.data());
  }

  /// The cell of the grid whose value belongs into a cell of a block or its halo.
  std::optional<Cell> source_of(std::size_t block, Cell cell) const {
    const GridRange& own = random_.grid.blocks[block].cells;
    int outside = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      outside += cell[d] < own.begin[d] || cell[d] >= own.end[d];
    }
    if (outside > 1 && !random_.shape.corners) return std::nullopt;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t n = random_.grid.cells[d];
      if (random_.grid.periodic[d]) cell[d] = (cell[d] + n) % n;
      if (cell[d] < 0 || cell[d] >= n) return std::nullopt;
    }
    return cell;
  }

  void add(std::size_t block, std::size_t field) {
    const GridRange all = room(block);
    const Cell& width = random_.shape.width;
    const std::size_t element = random_.element_bytes[field];
    const auto extent = [&](std::size_t d) {
      return static_cast<std::size_t>(all.end[d] - all.begin[d]);
    };
    const std::size_t row = extent(0) * element + (3 * block + field) % 7;
    const std::size_t plane = extent(1) * row + (5 * block + field) % 11;
    memory_.emplace_back(plane * extent(2));
    arrays_.push_back({memory_.back().data() + width[0] * static_cast<std::int64_t>(element) +
                           width[1] * static_cast<std::int64_t>(row) +
                           width[2] * static_cast<std::int64_t>(plane),
                       row, plane});
  }

  template <class Visit>
  void for_each_own(const Visit& visit) {
    for_each([&](std::size_t block, std::size_t field, const Cell& cell, std::byte* at) {
      if (!contains(random_.grid.blocks[block].cells, cell)) return;
      visit(cell, field, random_.element_bytes[field], at);
    });
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    std::size_t mine = 0;
    for (std::size_t block = 0; block < random_.grid.blocks.size(); ++block) {
      if (random_.grid.blocks[block].rank != rank_) continue;
      const GridRange& own = random_.grid.blocks[block].cells;
      for (std::size_t field = 0; field < fields_.size(); ++field) {
        const weir_grid_array& array = arrays_[mine++];
        for_each_cell(room(block), [&](const Cell& cell) {
          const auto element = static_cast<std::int64_t>(random_.element_bytes[field]);
          visit(block, field, cell,
                static_cast<std::byte*>(array.first) + (cell[0] - own.begin[0]) * element +
                    (cell[1] - own.begin[1]) * static_cast<std::int64_t>(array.row) +
                    (cell[2] - own.begin[2]) * static_cast<std::int64_t>(array.plane));
        });
      }
    }
  }

  const RandomGrid& random_;
  Rank rank_;
  std::vector<weir_halo_field> fields_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<weir_grid_array> arrays_;
};

}  // namespace weir::rt
