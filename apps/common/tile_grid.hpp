// Grids of cells cut into tiles, of which each step needs the nearest cells of its neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <weir/weir.hpp>

#include "common/app_streams.hpp"
#include "common/card_memory.hpp"
#include "common/matrix.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

/// Sides of a tile, as bits of Tile::edges.
enum Side : unsigned { kNorth, kSouth, kWest, kEast, kSides };

/// Some cells and the stream that computes them.
struct GridTile {
  std::size_t x, y, width, height;
  const AppStream* stream;
  unsigned edges = 0;                      ///< bit s: side s is an edge of the grid
  std::array<std::size_t, kSides> beside;  ///< the neighbours, where there is no edge
};

/// Elements before the first cell of a row in memory, which so begins a line of the cache.
inline constexpr std::size_t kLead = 16;

/// A number of T for each cell of a grid, in the program's memory.
template <class T>
struct GridField {
  /// Makes a field of zeros: element (x + kLead, y + 1) is cell x of row y.
  GridField(const weir::Runtime& runtime, std::size_t row, std::size_t height, const char* name)
      : memory(row, height + 2),
        buffer(wrap_for_cards(runtime, memory.data(), memory.size() * sizeof(T), name)) {}

  T& operator()(std::size_t x, std::size_t y) { return memory(x + kLead, y + 1); }
  T operator()(std::size_t x, std::size_t y) const { return memory(x + kLead, y + 1); }

  Matrix<T> memory;
  weir::Buffer buffer;
};

struct TileShape {
  std::size_t width, height;

  /// As many cells as in a square, but `aspect` times as wide as high where the rows of the grid
  /// are that long.
  static TileShape of(std::size_t edge, std::size_t aspect, std::size_t grid_width);
};

/// Cells in rows, cut into tiles. In memory there is one cell or more around the grid, which hold
/// nothing, so that a tile with all cells around it is always a region.
class TileGrid {
 public:
  /// Cuts a grid into tiles, of which the last of a row or column may be smaller. Each place gets
  /// tiles that follow one another.
  TileGrid(const AppStreams& app_streams, std::size_t width, std::size_t height,
           const TileShape& shape);

  std::size_t width() const noexcept { return width_; }
  std::size_t height() const noexcept { return height_; }
  /// Elements from one row of cells in memory to the next.
  std::size_t row() const noexcept { return (kLead + width_ + kLead) / kLead * kLead; }
  const std::vector<GridTile>& tiles() const noexcept { return tiles_; }
  std::size_t size() const noexcept { return tiles_.size(); }
  const GridTile& operator[](std::size_t index) const noexcept { return tiles_[index]; }

  template <class T>
  GridField<T> field(const weir::Runtime& runtime, const char* name) const {
    return {runtime, row(), height_, name};
  }
  /// The cells of a tile in a field.
  template <class T>
  weir::Region cells(const GridField<T>& field, const GridTile& tile) const noexcept {
    return part(field, tile.x, tile.y, tile.width, tile.height);
  }
  /// The same with one cell more on each side.
  template <class T>
  weir::Region around(const GridField<T>& field, const GridTile& tile) const noexcept {
    return part(field, tile.x - 1, tile.y - 1, tile.width + 2, tile.height + 2);
  }
  /// The outermost cells of a tile on one side.
  template <class T>
  weir::Region strip(const GridField<T>& field, const GridTile& tile, Side side) const noexcept {
    const std::size_t x = tile.x + (side == kEast ? tile.width - 1 : 0);
    const std::size_t y = tile.y + (side == kSouth ? tile.height - 1 : 0);
    const bool upright = side == kWest || side == kEast;
    return part(field, x, y, upright ? 1 : tile.width, upright ? tile.height : 1);
  }

  /// Copies a matrix with a row for each row of cells to a field, and back.
  template <class T>
  void store(const Matrix<T>& matrix, GridField<T>& field) const {
    for_each_tiled({width_, height_},
                   [&](std::size_t x, std::size_t y) { field(x, y) = matrix(y, x); });
  }
  template <class T>
  Matrix<T> load(const GridField<T>& field) const {
    Matrix<T> matrix(height_, width_);
    for_each_tiled({width_, height_},
                   [&](std::size_t x, std::size_t y) { matrix(y, x) = field(x, y); });
    return matrix;
  }

 private:
  /// Cells from (x, y) on, of which either may be -1.
  template <class T>
  weir::Region part(const GridField<T>& field, std::size_t x, std::size_t y, std::size_t width,
                    std::size_t height) const noexcept {
    return field.buffer.template tile<T>(x + kLead, y + 1, width, height, row());
  }
  void find_neighbours(std::size_t index);

  std::size_t width_, height_, across_;
  std::vector<GridTile> tiles_;
};

/// Orders the steps of tiles. In each step the caller calls for each tile once: await(), one action
/// or more, made(). A tile waits for the previous step of its four neighbours, or without `overlap`
/// of all tiles.
class TileSteps {
 public:
  TileSteps(const TileGrid& grid, const AppStreams& app_streams, bool overlap)
      : grid_(grid),
        app_streams_(app_streams),
        overlap_(overlap),
        before_(grid.size()),
        now_(grid.size()) {}

  /// Returns the order in which the caller processes tiles: first those that others wait for
  /// longest, which are those that `urgent(index)` names and those with a neighbour in another
  /// memory.
  template <class Urgent>
  std::vector<std::size_t> turns(const Urgent& urgent) const {
    std::vector<std::size_t> order;
    for (const bool first : {true, false}) {
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        const bool early = overlap_ && (urgent(i) || has_far_neighbour(grid_[i]));
        if (early == first) order.push_back(i);
      }
    }
    return order;
  }

  /// Makes the next action of a tile, which writes `target`, wait for its neighbours, and copies
  /// the adjacent cells of a field of T that the previous step wrote from other memories.
  template <class T>
  void await(std::size_t index, const weir::Region& target, const GridField<T>& field) {
    const GridTile& tile = grid_[index];
    std::vector<weir::Event> waits;
    for (unsigned side = 0; side < kSides; ++side) {
      if ((tile.edges >> side & 1) != 0) continue;
      const std::size_t other = tile.beside[side];
      const auto facing = static_cast<Side>(side ^ 1u);
      fetch(tile, other, grid_.strip(field, grid_[other], facing), waits);
    }
    if (!waits.empty()) tile.stream->stream.sync(waits, {&target, 1}, WEIR_SYNC_SCOPE_OPERANDS);
  }
  /// Notes the event that completes with the tile's step.
  void made(std::size_t index, const weir::Event& event) { now_[index] = event; }
  /// Ends a step that another follows.
  void next();

 private:
  bool has_far_neighbour(const GridTile& tile) const noexcept;
  void fetch(const GridTile& tile, std::size_t other, const weir::Region& strip,
             std::vector<weir::Event>& waits) const;

  const TileGrid& grid_;
  const AppStreams& app_streams_;
  bool overlap_;
  std::vector<weir::Event> before_, now_;  ///< of each tile
};

}  // namespace weir::apps
