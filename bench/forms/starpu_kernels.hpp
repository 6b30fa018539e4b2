// The tile kernels as functions of StarPU's codelets.
#pragma once

#include "common/starpu_session.hpp"
#include "forms/forms.hpp"

namespace weir_bench {

inline double* values_of(void* buffer) {
  return reinterpret_cast<double*>(STARPU_MATRIX_GET_PTR(buffer));
}
inline int order_of(void* buffer) { return static_cast<int>(STARPU_MATRIX_GET_NX(buffer)); }

inline void roots_task(void** buffers, void*) {
  roots(reinterpret_cast<double*>(STARPU_VECTOR_GET_PTR(buffers[0])),
        static_cast<int>(STARPU_VECTOR_GET_NX(buffers[0])));
}
inline void potrf_task(void** buffers, void*) {
  potrf(order_of(buffers[0]), values_of(buffers[0]));
}
inline void trsm_task(void** buffers, void*) {
  trsm(order_of(buffers[0]), values_of(buffers[0]), values_of(buffers[1]));
}
inline void syrk_task(void** buffers, void*) {
  syrk(order_of(buffers[0]), values_of(buffers[0]), values_of(buffers[1]));
}
inline void gemm_task(void** buffers, void*) {
  gemm(order_of(buffers[0]), values_of(buffers[0]), values_of(buffers[1]), values_of(buffers[2]));
}

}  // namespace weir_bench
