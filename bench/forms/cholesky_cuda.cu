#include "forms/cuda_kernels.cuh"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  const int tiles = a.tiles(), n = a.tile_order();
  const std::size_t bytes = a.tile_bytes();
  double* memory;
  std::vector<cudaStream_t> streams(tiles);  // one for each row
  std::vector<cudaEvent_t> ready(tiles);     // of the row's tile in column k
  check(cudaHostRegister(a.tile(0, 0), a.bytes(), cudaHostRegisterDefault));
  check(cudaMalloc(&memory, a.bytes()));
  for (cudaStream_t& stream : streams) check(cudaStreamCreate(&stream));
  for (cudaEvent_t& event : ready) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  const auto tile = [&](int row, int column) { return memory + a.offset(row, column); };
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      check(cudaMemcpyAsync(tile(row, column), a.tile(row, column), bytes, cudaMemcpyHostToDevice,
                            streams[row]));
    }
  }
  for (int k = 0; k < tiles; ++k) {
    potrf_kernel<<<1, 1, 0, streams[k]>>>(n, tile(k, k));
    check(cudaEventRecord(ready[k], streams[k]));
    for (int row = k + 1; row < tiles; ++row) {
      check(cudaStreamWaitEvent(streams[row], ready[k]));
      trsm_kernel<<<groups(n), kGroup, 0, streams[row]>>>(n, tile(k, k), tile(row, k));
      check(cudaEventRecord(ready[row], streams[row]));
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        check(cudaStreamWaitEvent(streams[row], ready[column]));
        gemm_kernel<<<groups(n * n), kGroup, 0, streams[row]>>>(n, tile(row, k), tile(column, k),
                                                                tile(row, column));
      }
      syrk_kernel<<<groups(n * n), kGroup, 0, streams[row]>>>(n, tile(row, k), tile(row, row));
    }
    for (int column = 0; column <= k; ++column) {
      check(cudaMemcpyAsync(a.tile(k, column), tile(k, column), bytes, cudaMemcpyDeviceToHost,
                            streams[k]));
    }
  }
  check(cudaDeviceSynchronize());
  for (cudaEvent_t event : ready) check(cudaEventDestroy(event));
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
  check(cudaFree(memory));
  check(cudaHostUnregister(a.tile(0, 0)));
}

}  // namespace weir_bench
