// The driver, cuBLAS and cuSOLVER, opened at run time, so that programs start on machines without
// them.
//
// Their C interfaces are declared here, so that building needs no headers of NVIDIA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weir::kernels {

using CudaAddress = unsigned long long;

/// CUDA_MEMCPY2D.
struct CudaRows {
  struct End {
    std::size_t x = 0, y = 0;
    unsigned memory = 2;  ///< of the device
    const void* host = nullptr;
    CudaAddress device = 0;
    void* array = nullptr;
    std::size_t pitch = 0;
  };
  End source, target;
  std::size_t width = 0, height = 0;
};

/// Functions of the driver that the kernels call. Streams are CUstream, results CUresult.
struct CudaDriver {
  int (*allocate)(CudaAddress*, std::size_t bytes, void* stream);
  int (*release_in)(CudaAddress, void* stream);
  int (*release)(CudaAddress);
  int (*allocate_pinned)(void** address, std::size_t bytes, unsigned flags);
  int (*release_pinned)(void*);
  int (*copy)(CudaAddress target, CudaAddress source, std::size_t bytes, void* stream);
  int (*copy_rows)(const CudaRows*, void* stream);
  int (*copy_to_host)(void* target, CudaAddress source, std::size_t bytes, void* stream);
  int (*set)(CudaAddress, unsigned char byte, std::size_t bytes, void* stream);
  int (*set_rows)(CudaAddress, std::size_t pitch, unsigned char byte, std::size_t width,
                  std::size_t height, void* stream);
  int (*error_name)(int code, const char** name);

  /// Finds them in the driver that runs the domain. Throws rt::Error{unavailable}.
  static const CudaDriver& get();

  /// Throws rt::Error unless code is 0. `what` names the call in the message.
  void check(int code, const char* what) const;
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

struct Cublas {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  CublasRoutines<float> s;
  CublasRoutines<double> d;

  /// Opens WEIR_CUBLAS, or the newest known version, on first use. Throws rt::Error{unavailable}
  /// that says what to install; the next call then tries again.
  static const Cublas& get();

  template <class T>
  const CublasRoutines<T>& routines() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return s;
    } else {
      return d;
    }
  }

  /// Throws rt::Error unless status is 0.
  static void check(int status, const char* what);
};

/// Routines of cuSOLVER for one type of element.
template <class T>
struct CusolverRoutines {
  int (*potrf_size)(void* handle, int uplo, int n, T* a, int lda, int* elements);
  int (*potrf)(void* handle, int uplo, int n, T* a, int lda, T* work, int elements, int* info);
};

struct Cusolver {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  CusolverRoutines<float> s;
  CusolverRoutines<double> d;

  /// As Cublas::get(), for WEIR_CUSOLVER.
  static const Cusolver& get();

  template <class T>
  const CusolverRoutines<T>& routines() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return s;
    } else {
      return d;
    }
  }

  static void check(int status, const char* what);
};

}  // namespace weir::kernels
