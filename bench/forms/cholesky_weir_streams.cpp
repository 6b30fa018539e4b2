#include "forms/weir_kernels.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
  weir::Runtime runtime;
  weir::Place place = runtime.domain(0).place();
  weir::Stream stream = place.stream();
  weir::Buffer matrix = runtime.wrap(a.tile(0, 0), a.bytes());
  weir::Kernel potrf = runtime.kernel("potrf", potrf_kernel);
  weir::Kernel trsm = runtime.kernel("trsm", trsm_kernel);
  weir::Kernel syrk = runtime.kernel("syrk", syrk_kernel);
  weir::Kernel gemm = runtime.kernel("gemm", gemm_kernel);
  const auto tile = [&](int row, int column) {
    return matrix.elements<double>(a.offset(row, column), n * n);
  };
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) stream.upload(tile(row, column));
  }
  for (int k = 0; k < tiles; ++k) {
    stream.compute(potrf, {weir::readwrite(tile(k, k))}, {n});
    for (int row = k + 1; row < tiles; ++row) {
      stream.compute(trsm, {weir::read(tile(k, k)), weir::readwrite(tile(row, k))}, {n});
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        stream.compute(gemm,
                       {weir::read(tile(row, k)), weir::read(tile(column, k)),
                        weir::readwrite(tile(row, column))},
                       {n});
      }
      stream.compute(syrk, {weir::read(tile(row, k)), weir::readwrite(tile(row, row))}, {n});
    }
    for (int column = 0; column <= k; ++column) stream.download(tile(k, column));
  }
  stream.synchronize();
}

}  // namespace weir_bench
