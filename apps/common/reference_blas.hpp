// The BLAS that the runtime found, called directly on all cores.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <weir/weir.hpp>

namespace weir::apps {

/// One operand of a product: column-major, transposed or not.
template <class T>
struct Factor {
  const T* data;
  std::size_t stride;
  bool transposed = false;
};

/// Yardstick of speed and second opinion on results. Use it while no stream has work.
class ReferenceBlas {
 public:
  /// Opens the library that the runtime's description names. Throws weir::Error{unavailable}.
  explicit ReferenceBlas(const weir::Runtime& runtime);

  const std::string& name() const noexcept { return name_; }
  /// Processor the library has kernels for, "" when it does not say.
  const std::string& kernels() const noexcept { return kernels_; }

  /// C (m x n) = alpha A B + beta C with an inner dimension of k.
  template <class T>
  void multiply(std::size_t m, std::size_t n, std::size_t k, std::type_identity_t<T> alpha,
                Factor<T> a, Factor<T> b, std::type_identity_t<T> beta, T* c,
                std::size_t stride) const;

  /// Returns the fastest of a few large products, in operations a second.
  template <class T>
  double gemm_peak() const;

 private:
  template <class T>
  using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha,
                        const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);

  template <class T>
  Gemm<T> gemm() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return single_;
    } else {
      return double_;
    }
  }

  std::string name_, kernels_;
  Gemm<float> single_ = nullptr;
  Gemm<double> double_ = nullptr;
  void (*set_threads_)(int) = nullptr;  ///< null: the library decides
  int cores_ = 1;
};

}  // namespace weir::apps
