#include "forms/starpu_kernels.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  static starpu_codelet potrf = {.cpu_funcs = {potrf_task}, .nbuffers = 1, .modes = {STARPU_RW}};
  static starpu_codelet trsm = {
      .cpu_funcs = {trsm_task}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}};
  static starpu_codelet syrk = {
      .cpu_funcs = {syrk_task}, .nbuffers = 2, .modes = {STARPU_R, STARPU_RW}};
  static starpu_codelet gemm = {
      .cpu_funcs = {gemm_task}, .nbuffers = 3, .modes = {STARPU_R, STARPU_R, STARPU_RW}};
  const int tiles = a.tiles(), n = a.tile_order();
  TileTable<starpu_data_handle_t> tile(tiles);
  check_starpu(starpu_init(nullptr));
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      starpu_matrix_data_register(&tile(row, column), STARPU_MAIN_RAM,
                                  std::uintptr_t(a.tile(row, column)), n, n, n, sizeof(double));
    }
  }
  for (int k = 0; k < tiles; ++k) {
    check_starpu(starpu_task_insert(&potrf, STARPU_RW, tile(k, k), 0));
    for (int row = k + 1; row < tiles; ++row) {
      check_starpu(starpu_task_insert(&trsm, STARPU_R, tile(k, k), STARPU_RW, tile(row, k), 0));
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        check_starpu(starpu_task_insert(&gemm, STARPU_R, tile(row, k), STARPU_R, tile(column, k),
                                        STARPU_RW, tile(row, column), 0));
      }
      check_starpu(starpu_task_insert(&syrk, STARPU_R, tile(row, k), STARPU_RW, tile(row, row), 0));
    }
  }
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) starpu_data_unregister(tile(row, column));
  }
  starpu_shutdown();
}

}  // namespace weir_bench
