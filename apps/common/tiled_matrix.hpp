// A matrix cut into tiles that streams of several domains work on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <weir/weir.hpp>

#include "common/app_streams.hpp"
#include "common/card_memory.hpp"
#include "common/matrix.hpp"

namespace weir::apps {

/// Tracks where the newest copy of each tile is, and makes a stream wait for it and copy it. Waits
/// and copies are actions of the streams, never on the calling thread.
///
/// The program must not write a tile that another stream still reads: here each tile has one owner
/// that writes it, and others read it after its last write.
class TileDirectory {
 public:
  /// All tiles are in the program's memory.
  TileDirectory(std::size_t tiles, std::size_t app_streams);

  /// Orders the next actions of a stream after the newest contents of a tile, in its memory.
  void fetch(const AppStream& app_stream, std::size_t tile, const weir::Region& region);
  /// Notes that `written`, the last action of a stream, wrote the tile.
  void wrote(const AppStream& app_stream, std::size_t tile, const weir::Event& written);
  /// Copies a tile to the program's memory if its newest copy is elsewhere.
  void collect(std::size_t tile, const weir::Region& region);
  /// Forgets everything: all tiles are in the program's memory again.
  void reset();

 private:
  /// The newest contents of a tile in one memory.
  struct Copy {
    weir_domain* memory;
    const AppStream*
        stream;  ///< that wrote or fetched it last; null: there before the streams began
    weir::Event ready;
  };
  struct Tile {
    std::vector<Copy> copies;   ///< the first is the one that was written
    std::vector<bool> ordered;  ///< streams whose next actions come after their copy
  };

  const Copy* find(const Tile& tile, weir_domain* memory) const;

  std::vector<Tile> tiles_;
  std::size_t app_stream_count_;
};

/// Tiles of a column, one below the other.
struct Rows {
  std::size_t begin, end;
  Rows(std::size_t first, std::size_t last) : begin(first), end(last) {}
  Rows(std::size_t row) : begin(row), end(row + 1) {}
};
/// Columns of tiles, one beside the other.
using Columns = Rows;

/// A column-major matrix of T in the program's memory, as a buffer of tiles. The last row and
/// column of tiles may be smaller.
template <class T>
class TiledMatrix {
 public:
  /// Borrows the memory.
  TiledMatrix(const weir::Runtime& runtime, Matrix<T>& memory, std::size_t tile_rows,
              std::size_t tile_columns, std::size_t app_streams, const char* name)
      : memory_(memory),
        tile_rows_(tile_rows),
        tile_columns_(tile_columns),
        rows_((memory.rows() + tile_rows - 1) / tile_rows),
        columns_((memory.columns() + tile_columns - 1) / tile_columns),
        buffer_(wrap_for_cards(runtime, memory.data(), memory.stored() * sizeof(T), name)),
        directory_(rows_ * columns_, app_streams) {}

  /// Tiles in a column and in a row.
  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return columns_; }

  /// A block of tiles, as tasks of a queue name them.
  weir::Region region(Rows i, Columns j) const noexcept {
    const std::size_t row = i.begin * tile_rows_, column = j.begin * tile_columns_;
    return buffer_.template tile<T>(row, column, std::min(i.end * tile_rows_, memory_.rows()) - row,
                                    std::min(j.end * tile_columns_, memory_.columns()) - column,
                                    memory_.leading_dimension());
  }

  /// Makes the newest contents of tiles ready for the next action of the stream, as its operand.
  weir::Operand read(const AppStream& app_stream, Rows i, Columns j) {
    fetch(app_stream, i, j);
    return weir::read(region(i, j));
  }
  weir::Operand readwrite(const AppStream& app_stream, Rows i, Columns j) {
    fetch(app_stream, i, j);
    return weir::readwrite(region(i, j));
  }
  /// For an action that writes all of a tile: nothing is fetched.
  weir::Operand write(Rows i, Columns j) { return weir::write(region(i, j)); }
  /// Notes that `event`, of the last action of a stream, completes when the tiles are written.
  void wrote(const AppStream& app_stream, Rows i, Columns j, const weir::Event& event) {
    for_each(i, j, [&](std::size_t row, std::size_t column) {
      directory_.wrote(app_stream, index(row, column), event);
    });
  }
  /// Copies a tile to the program's memory if its newest copy is elsewhere.
  void collect(std::size_t i, std::size_t j) { directory_.collect(index(i, j), region(i, j)); }
  void reset() { directory_.reset(); }
  /// The same for tasks: copies in other memories are out of date.
  void reset(const weir::Queue& queue) const {
    queue.acquire(buffer_.all(), WEIR_ACCESS_READ_WRITE);
  }

 private:
  std::size_t index(std::size_t i, std::size_t j) const noexcept { return i + j * rows_; }
  template <class Visit>
  static void for_each(Rows i, Columns j, const Visit& visit) {
    for (std::size_t column = j.begin; column < j.end; ++column) {
      for (std::size_t row = i.begin; row < i.end; ++row) visit(row, column);
    }
  }
  void fetch(const AppStream& app_stream, Rows i, Columns j) {
    for_each(i, j, [&](std::size_t row, std::size_t column) {
      directory_.fetch(app_stream, index(row, column), region(row, column));
    });
  }
  Matrix<T>& memory_;
  std::size_t tile_rows_, tile_columns_, rows_, columns_;
  weir::Buffer buffer_;
  TileDirectory directory_;
};

}  // namespace weir::apps
