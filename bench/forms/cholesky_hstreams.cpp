#include <initializer_list>

#include "forms/hstreams_kernels.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  constexpr int kStreams = 4;
  const int tiles = a.tiles(), n = a.tile_order();
  const std::uint64_t bytes = a.tile_bytes();
  std::vector<HSTR_EVENT> ready(tiles);  // of the row's tile in column k
  const auto wait = [&](int row, double* tile, HSTR_EVENT& event) {
    void* address = tile;
    check(hStreams_app_event_wait_in_stream(row % kStreams, 1, &event, 1, &address, nullptr));
  };
  const auto call = [&](int row, const char* sink, std::initializer_list<double*> operands,
                        HSTR_EVENT* event) {
    std::vector<std::uint64_t> arguments = {std::uint64_t(n)};
    for (double* tile : operands) arguments.push_back(std::uint64_t(tile));
    check(hStreams_app_invoke(row % kStreams, sink, 1, operands.size(), arguments.data(), event,
                              nullptr, 0));
  };
  check(hStreams_app_init(kStreams, 1));
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      double* const tile = a.tile(row, column);
      check(hStreams_app_create_buf(tile, bytes));
      check(hStreams_app_xfer_memory(row % kStreams, tile, tile, bytes, HSTR_SRC_TO_SINK, nullptr));
    }
  }
  for (int k = 0; k < tiles; ++k) {
    call(k, "potrf_sink", {a.tile(k, k)}, &ready[k]);
    for (int row = k + 1; row < tiles; ++row) {
      wait(row, a.tile(k, k), ready[k]);
      call(row, "trsm_sink", {a.tile(k, k), a.tile(row, k)}, &ready[row]);
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        wait(row, a.tile(column, k), ready[column]);
        call(row, "gemm_sink", {a.tile(row, k), a.tile(column, k), a.tile(row, column)}, nullptr);
      }
      call(row, "syrk_sink", {a.tile(row, k), a.tile(row, row)}, nullptr);
    }
    for (int column = 0; column <= k; ++column) {
      double* const tile = a.tile(k, column);
      check(hStreams_app_xfer_memory(k % kStreams, tile, tile, bytes, HSTR_SINK_TO_SRC, nullptr));
    }
  }
  check(hStreams_app_thread_sync());
  check(hStreams_app_fini());
}

}  // namespace weir_bench
