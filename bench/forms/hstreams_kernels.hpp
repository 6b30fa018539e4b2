// The tile kernels as sink functions of hStreams.
#pragma once

#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include <stdexcept>

#include "forms/forms.hpp"

namespace weir_bench {

inline void check(HSTR_RESULT result) {
  if (result != HSTR_RESULT_SUCCESS) throw std::runtime_error(hStreams_ResultGetName(result));
}

extern "C" {
HSTREAMS_EXPORT __attribute__((used)) inline void roots_sink(std::uint64_t count, double* x) {
  roots(x, static_cast<int>(count));
}
HSTREAMS_EXPORT __attribute__((used)) inline void potrf_sink(std::uint64_t n, double* a) {
  potrf(static_cast<int>(n), a);
}
HSTREAMS_EXPORT __attribute__((used)) inline void trsm_sink(std::uint64_t n, const double* l,
                                                            double* x) {
  trsm(static_cast<int>(n), l, x);
}
HSTREAMS_EXPORT __attribute__((used)) inline void syrk_sink(std::uint64_t n, const double* a,
                                                            double* c) {
  syrk(static_cast<int>(n), a, c);
}
HSTREAMS_EXPORT __attribute__((used)) inline void gemm_sink(std::uint64_t n, const double* a,
                                                            const double* b, double* c) {
  gemm(static_cast<int>(n), a, b, c);
}
}

}  // namespace weir_bench
