// The tasks of a tiled Cholesky factorisation (lower, right-looking) in sequential order.
#pragma once

#include <array>
#include <cstddef>

namespace weir_bench {

enum class TileKernel { potrf, trsm, syrk, gemm };

/// One task: it updates tile (row, column) with tiles of column `step`.
struct TileTask {
  TileKernel kernel;
  int row, column, step;
};

/// Index of a tile on or below the diagonal in packed row order.
inline int packed(int row, int column) { return row * (row + 1) / 2 + column; }
inline int packed_tiles(int tiles) { return packed(tiles, 0); }

/// The tile that a task reads and writes.
inline int target_of(const TileTask& task) { return packed(task.row, task.column); }

/// The tiles that a task only reads: `count` of them.
struct TileReads {
  std::size_t count;
  std::array<int, 2> tile;
};
inline TileReads reads_of(const TileTask& task) {
  switch (task.kernel) {
    case TileKernel::potrf: return {0, {}};
    case TileKernel::trsm: return {1, {packed(task.step, task.step)}};
    case TileKernel::syrk: return {1, {packed(task.row, task.step)}};
    case TileKernel::gemm: break;
  }
  return {2, {packed(task.row, task.step), packed(task.column, task.step)}};
}

/// Calls visit(task) for every task of a matrix of tiles x tiles tiles.
template <class Visit>
void visit_cholesky(int tiles, Visit&& visit) {
  for (int step = 0; step < tiles; ++step) {
    visit(TileTask{TileKernel::potrf, step, step, step});
    for (int row = step + 1; row < tiles; ++row) {
      visit(TileTask{TileKernel::trsm, row, step, step});
    }
    for (int row = step + 1; row < tiles; ++row) {
      for (int column = step + 1; column < row; ++column) {
        visit(TileTask{TileKernel::gemm, row, column, step});
      }
      visit(TileTask{TileKernel::syrk, row, row, step});
    }
  }
}

/// Number of tasks that visit_cholesky() visits.
inline long cholesky_tasks(long tiles) { return tiles * (tiles + 1) * (tiles + 2) / 6; }

}  // namespace weir_bench
