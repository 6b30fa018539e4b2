// The tile kernels for CUDA.
#pragma once

#include <stdexcept>

#include <cuda_runtime.h>

#define FORMS_FUNCTION __host__ __device__ static inline
#include "forms/forms.hpp"

namespace weir_bench {

constexpr int kGroup = 64;
inline int groups(int items) { return (items + kGroup - 1) / kGroup; }

inline void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

__device__ inline int item() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

static __global__ void roots_kernel(double* x, int count) {
  if (item() < count) root_item(x, item());
}
static __global__ void potrf_kernel(int n, double* a) { potrf_item(n, a); }
static __global__ void trsm_kernel(int n, const double* l, double* x) {
  if (item() < n) trsm_item(n, l, x, item());
}
static __global__ void syrk_kernel(int n, const double* a, double* c) {
  if (item() < n * n) syrk_item(n, a, c, item());
}
static __global__ void gemm_kernel(int n, const double* a, const double* b, double* c) {
  if (item() < n * n) gemm_item(n, a, b, c, item());
}

}  // namespace weir_bench
