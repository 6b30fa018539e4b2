#include <sycl/sycl.hpp>

#include "forms/forms.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
  const std::size_t bytes = a.tile_bytes();
  const sycl::range<1> rows(n), elements(n * n);
  sycl::queue queue;
  double* const memory = sycl::malloc_device<double>(a.bytes() / sizeof(double), queue);
  TileTable<sycl::event> ready(tiles);  // of the last command that writes the tile
  const auto tile = [&](int row, int column) { return memory + a.offset(row, column); };
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      ready(row, column) = queue.memcpy(tile(row, column), a.tile(row, column), bytes);
    }
  }
  for (int k = 0; k < tiles; ++k) {
    double* const diagonal = tile(k, k);
    ready(k, k) = queue.single_task(ready(k, k), [=] { potrf_item(n, diagonal); });
    for (int row = k + 1; row < tiles; ++row) {
      double* const target = tile(row, k);
      ready(row, k) = queue.parallel_for(rows, {ready(k, k), ready(row, k)}, [=](sycl::id<1> item) {
        trsm_item(n, diagonal, target, item);
      });
    }
    for (int row = k + 1; row < tiles; ++row) {
      double *const left = tile(row, k), *const square = tile(row, row);
      for (int column = k + 1; column < row; ++column) {
        double *const right = tile(column, k), *const target = tile(row, column);
        ready(row, column) =
            queue.parallel_for(elements, {ready(row, k), ready(column, k), ready(row, column)},
                               [=](sycl::id<1> item) { gemm_item(n, left, right, target, item); });
      }
      ready(row, row) =
          queue.parallel_for(elements, {ready(row, k), ready(row, row)},
                             [=](sycl::id<1> item) { syrk_item(n, left, square, item); });
    }
    for (int column = 0; column <= k; ++column) {
      queue.memcpy(a.tile(k, column), tile(k, column), bytes, ready(k, column));
    }
  }
  queue.wait_and_throw();
  sycl::free(memory, queue);
}

}  // namespace weir_bench
