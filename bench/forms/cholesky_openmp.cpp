#include "forms/openmp_kernels.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
#pragma omp parallel
#pragma omp single
  {
    for (int row = 0; row < tiles; ++row) {
      for (int column = 0; column <= row; ++column) {
        double* const tile = a.tile(row, column);
#pragma omp target enter data map(to : tile[0 : n * n]) depend(out : tile[0]) nowait
      }
    }
    for (int k = 0; k < tiles; ++k) {
      double* const diagonal = a.tile(k, k);
#pragma omp target depend(inout : diagonal[0]) nowait
      potrf_item(n, diagonal);
      for (int row = k + 1; row < tiles; ++row) {
        double* const target = a.tile(row, k);
#pragma omp target teams loop depend(in : diagonal[0]) depend(inout : target[0]) nowait
        for (int item = 0; item < n; ++item) trsm_item(n, diagonal, target, item);
      }
      for (int row = k + 1; row < tiles; ++row) {
        double *const left = a.tile(row, k), *const square = a.tile(row, row);
        for (int column = k + 1; column < row; ++column) {
          double *const right = a.tile(column, k), *const target = a.tile(row, column);
#pragma omp target teams loop depend(in : left[0], right[0]) depend(inout : target[0]) nowait
          for (int item = 0; item < n * n; ++item) gemm_item(n, left, right, target, item);
        }
#pragma omp target teams loop depend(in : left[0]) depend(inout : square[0]) nowait
        for (int item = 0; item < n * n; ++item) syrk_item(n, left, square, item);
      }
      for (int column = 0; column <= k; ++column) {
        double* const tile = a.tile(k, column);
#pragma omp target exit data map(from : tile[0 : n * n]) depend(inout : tile[0]) nowait
      }
    }
  }
}

}  // namespace weir_bench
