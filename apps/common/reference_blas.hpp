// The BLAS that the runtime found, called directly on all cores.
#pragma once

#include <cstddef>
#include <optional>
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

/// Yardstick of speed and second opinion on results. Use it while no stream has work. The first
/// product opens the library that the runtime's description names; without one it is computed in
/// plain loops. Throws weir::Error{unavailable} for a library without products. From one thread.
class ReferenceBlas {
 public:
  explicit ReferenceBlas(const weir::Runtime& runtime) noexcept : runtime_(runtime) {}

  /// C (m x n) = alpha A B + beta C with an inner dimension of k.
  template <class T>
  void multiply(std::size_t m, std::size_t n, std::size_t k, std::type_identity_t<T> alpha,
                Factor<T> a, Factor<T> b, std::type_identity_t<T> beta, T* c,
                std::size_t stride) const;

  /// Returns the fastest of a few square products of an order, or of the nearest from 512 to 2048,
  /// in operations a second; 0 without a BLAS.
  template <class T>
  double gemm_peak(std::size_t order) const;

 private:
  template <class T>
  using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha,
                        const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);

  struct Library {
    Gemm<float> single = nullptr;
    Gemm<double> twice = nullptr;
    void (*set_threads)(int) = nullptr;  ///< null: the library decides
    int cores = 1;
    bool plain = false;
  };

  static Library open(const weir::Runtime& runtime);
  const Library& library() const {
    if (!library_) library_ = open(runtime_);
    return *library_;
  }

  const weir::Runtime& runtime_;
  mutable std::optional<Library> library_;
};

}  // namespace weir::apps
