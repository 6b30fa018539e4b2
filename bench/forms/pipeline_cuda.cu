#include "forms/cuda_kernels.cuh"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  constexpr int kSlots = 3;  // one is uploaded, one computed, one downloaded
  const std::size_t bytes = block * sizeof(double);
  double* slots;
  cudaStream_t streams[kSlots];
  check(cudaHostRegister(x, blocks * bytes, cudaHostRegisterDefault));
  check(cudaMalloc(&slots, kSlots * bytes));
  for (cudaStream_t& stream : streams) check(cudaStreamCreate(&stream));
  for (int i = 0; i < blocks; ++i) {
    double* const part = x + i * block;
    double* const slot = slots + i % kSlots * block;
    const cudaStream_t stream = streams[i % kSlots];
    check(cudaMemcpyAsync(slot, part, bytes, cudaMemcpyHostToDevice, stream));
    roots_kernel<<<groups(block), kGroup, 0, stream>>>(slot, block);
    check(cudaMemcpyAsync(part, slot, bytes, cudaMemcpyDeviceToHost, stream));
  }
  check(cudaDeviceSynchronize());
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
  check(cudaFree(slots));
  check(cudaHostUnregister(x));
}

}  // namespace weir_bench
