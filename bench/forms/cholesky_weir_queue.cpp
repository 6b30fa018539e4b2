#include "forms/weir_kernels.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
  weir::Runtime runtime;
  weir::Buffer matrix = runtime.wrap(a.tile(0, 0), a.bytes());
  weir::Kernel potrf = runtime.kernel("potrf", potrf_kernel);
  weir::Kernel trsm = runtime.kernel("trsm", trsm_kernel);
  weir::Kernel syrk = runtime.kernel("syrk", syrk_kernel);
  weir::Kernel gemm = runtime.kernel("gemm", gemm_kernel);
  weir::Queue queue = runtime.queue();
  const auto tile = [&](int row, int column) {
    return matrix.elements<double>(a.offset(row, column), n * n);
  };
  for (int k = 0; k < tiles; ++k) {
    queue.submit(potrf, {weir::readwrite(tile(k, k))}, {n});
    for (int row = k + 1; row < tiles; ++row) {
      queue.submit(trsm, {weir::read(tile(k, k)), weir::readwrite(tile(row, k))}, {n});
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        queue.submit(gemm,
                     {weir::read(tile(row, k)), weir::read(tile(column, k)),
                      weir::readwrite(tile(row, column))},
                     {n});
      }
      queue.submit(syrk, {weir::read(tile(row, k)), weir::readwrite(tile(row, row))}, {n});
    }
  }
  queue.synchronize();
}

}  // namespace weir_bench
