// The tile kernels as kernels of weir.
#pragma once

#include <weir/weir.hpp>

#include "forms/forms.hpp"

namespace weir_bench {

inline void roots_kernel(const weir::Call& call) {
  roots(call.span<double>(0).data(), static_cast<int>(call.span<double>(0).size()));
}
inline void potrf_kernel(const weir::Call& call) {
  potrf(call.scalar<int>(0), call.span<double>(0).data());
}
inline void trsm_kernel(const weir::Call& call) {
  trsm(call.scalar<int>(0), call.span<double>(0).data(), call.span<double>(1).data());
}
inline void syrk_kernel(const weir::Call& call) {
  syrk(call.scalar<int>(0), call.span<double>(0).data(), call.span<double>(1).data());
}
inline void gemm_kernel(const weir::Call& call) {
  gemm(call.scalar<int>(0), call.span<double>(0).data(), call.span<double>(1).data(),
       call.span<double>(2).data());
}

}  // namespace weir_bench
