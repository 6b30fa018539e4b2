#include "forms/forms.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
  for (int k = 0; k < tiles; ++k) {
    potrf(n, a.tile(k, k));
    for (int row = k + 1; row < tiles; ++row) {
      trsm(n, a.tile(k, k), a.tile(row, k));
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        gemm(n, a.tile(row, k), a.tile(column, k), a.tile(row, column));
      }
      syrk(n, a.tile(row, k), a.tile(row, row));
    }
  }
}

}  // namespace weir_bench
