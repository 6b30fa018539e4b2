// cuBLAS and cuSOLVER, opened at run time, so that programs start on machines without them.
//
// Their C interfaces are declared here, so that building needs the headers of the driver alone.
#pragma once

#include <type_traits>

namespace weir::kernels {

/// Routines for both types of elements.
template <template <class> class Routines>
struct ByElement {
  Routines<float> s;
  Routines<double> d;

  template <class T>
  const Routines<T>& routines() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return s;
    } else {
      return d;
    }
  }
};

/// Routines of cuBLAS for one type of element. Options have the library's numbers.
template <class T>
struct CublasRoutines {
  int (*gemm)(void* handle, int trans_a, int trans_b, int m, int n, int k, const T* alpha,
              const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc);
  int (*syrk)(void* handle, int uplo, int trans, int n, int k, const T* alpha, const T* a, int lda,
              const T* beta, T* c, int ldc);
  int (*trsm)(void* handle, int side, int uplo, int trans, int diag, int m, int n, const T* alpha,
              const T* a, int lda, T* b, int ldb);
};

struct Cublas : ByElement<CublasRoutines> {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);

  /// Opens WEIR_CUBLAS, or the newest known version, on first use. Throws rt::Error{unavailable}
  /// that says what to install; the next call then tries again.
  static const Cublas& get();

  /// Throws rt::Error unless status is 0.
  static void check(int status, const char* what);
};

/// Routines of cuSOLVER for one type of element.
template <class T>
struct CusolverRoutines {
  int (*potrf_size)(void* handle, int uplo, int n, T* a, int lda, int* elements);
  int (*potrf)(void* handle, int uplo, int n, T* a, int lda, T* work, int elements, int* info);
};

struct Cusolver : ByElement<CusolverRoutines> {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);

  /// As Cublas::get(), for WEIR_CUSOLVER.
  static const Cusolver& get();

  static void check(int status, const char* what);
};

}  // namespace weir::kernels
