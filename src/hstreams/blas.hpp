// The CBLAS behind the built-in gemm functions.
#pragma once

#include <cstdint>

namespace weir::hs {

/// The four gemm functions of a CBLAS. Integers are passed as 64-bit words, which are valid in
/// registers and on the stack for libraries with 32-bit and with 64-bit integers.
struct Blas {
  template <class Scalar, class Data>
  using Gemm = void (*)(std::uint64_t order, std::uint64_t trans_a, std::uint64_t trans_b,
                        std::uint64_t m, std::uint64_t n, std::uint64_t k, Scalar alpha,
                        const Data* a, std::uint64_t ld_a, const Data* b, std::uint64_t ld_b,
                        Scalar beta, Data* c, std::uint64_t ld_c);

  Gemm<float, float> sgemm = nullptr;
  Gemm<double, double> dgemm = nullptr;
  Gemm<const void*, void> cgemm = nullptr;
  Gemm<const void*, void> zgemm = nullptr;

  /// Finds the program's own BLAS, or opens the first available one; without any the functions are
  /// null.
  static const Blas& get();
  explicit operator bool() const noexcept { return sgemm && dgemm && cgemm && zgemm; }
};

}  // namespace weir::hs
