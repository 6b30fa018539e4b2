#include "fake_cublas.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

namespace {

constexpr int kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13;
constexpr int kNo = 0, kLower = 0, kLeft = 0, kUnit = 1;

std::atomic<unsigned long> handles{0};
std::atomic<int> next_status{0};

struct Handle {
  CUstream stream = nullptr;
};

int make(void** out) {
  CUcontext context = nullptr;
  if (cuCtxPopCurrent(&context) != CUDA_SUCCESS) return kNotInitialized;
  cuCtxPushCurrent(context);
  *out = new Handle;
  ++handles;
  return 0;
}
int destroy(void* handle) {
  delete static_cast<Handle*>(handle);
  --handles;
  return 0;
}
int set_stream(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = static_cast<CUstream>(stream);
  return 0;
}

/// Runs work in the stream of a handle, after what is there.
int enqueue(void* handle, bool valid, std::function<void()> work) {
  if (const int status = next_status.exchange(0); status != 0) return status;
  if (!valid) return kInvalidValue;
  auto* const kept = new std::function<void()>(std::move(work));
  const CUhostFn run = [](void* data) {
    auto* const mine = static_cast<std::function<void()>*>(data);
    (*mine)();
    delete mine;
  };
  const CUresult code = cuLaunchHostFunc(static_cast<Handle*>(handle)->stream, run, kept);
  if (code != CUDA_SUCCESS) delete kept;
  return code == CUDA_SUCCESS ? 0 : kExecutionFailed;
}

/// A column-major matrix.
template <class T>
struct Tile {
  T* data;
  std::ptrdiff_t stride;
  int trans = kNo;

  T& operator()(int i, int j) const {
    if (trans != kNo) std::swap(i, j);
    return data[i + j * stride];
  }
};

template <class T>
Tile<const T> input(const T* data, int stride, int trans = kNo) {
  return {data, stride, trans};
}

/// One element of alpha op(A) op(B) + beta C.
template <class T>
void product(T alpha, Tile<const T> a, Tile<const T> b, int depth, int i, int j, T beta, T& c) {
  T sum = 0;
  for (int l = 0; l < depth && alpha != 0; ++l) sum += a(i, l) * b(l, j);
  c = alpha * sum + (beta == 0 ? T{0} : beta * c);
}

template <class T>
int gemm(void* handle, int trans_a, int trans_b, int m, int n, int k, const T* alpha, const T* a,
         int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {
  const bool valid = lda >= (trans_a == kNo ? m : k) && ldb >= (trans_b == kNo ? k : n) && ldc >= m;
  return enqueue(handle, valid, [=, alpha = *alpha, beta = *beta] {
    const auto left = input(a, lda, trans_a), right = input(b, ldb, trans_b);
    const Tile<T> out{c, ldc};
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) product(alpha, left, right, k, i, j, beta, out(i, j));
    }
  });
}

template <class T>
int syrk(void* handle, int uplo, int trans, int n, int k, const T* alpha, const T* a, int lda,
         const T* beta, T* c, int ldc) {
  const bool valid = lda >= (trans == kNo ? n : k) && ldc >= n;
  return enqueue(handle, valid, [=, alpha = *alpha, beta = *beta] {
    const auto left = input(a, lda, trans), right = input(a, lda, trans == kNo);
    const Tile<T> out{c, ldc};
    for (int j = 0; j < n; ++j) {
      const int first = uplo == kLower ? j : 0, end = uplo == kLower ? n : j + 1;
      for (int i = first; i < end; ++i) product(alpha, left, right, k, i, j, beta, out(i, j));
    }
  });
}

/// Solves op(A) x = alpha x by substitution, x a row or a column.
template <class T, class At>
void substitute(Tile<const T> a, bool lower, int diag, int order, T alpha, const At& x) {
  for (int step = 0; step < order; ++step) {
    const int i = lower ? step : order - 1 - step;
    const int first = lower ? 0 : i + 1, end = lower ? i : order;
    if (alpha == 0) {
      x(i) = 0;
      continue;
    }
    T sum = alpha * x(i);
    for (int l = first; l < end; ++l) sum -= a(i, l) * x(l);
    x(i) = diag == kUnit ? sum : sum / a(i, i);
  }
}

template <class T>
int trsm(void* handle, int side, int uplo, int trans, int diag, int m, int n, const T* alpha,
         const T* a, int lda, T* b, int ldb) {
  const int order = side == kLeft ? m : n;
  return enqueue(handle, lda >= order && ldb >= m, [=, alpha = *alpha] {
    // X op(A) = B is op(A)^T X^T = B^T.
    const bool turned = (trans != kNo) != (side != kLeft);
    const auto factor = input(a, lda, turned);
    const Tile<T> out{b, ldb};
    for (int other = 0; other < (side == kLeft ? n : m); ++other) {
      substitute(factor, (uplo == kLower) != turned, diag, order, alpha,
                 [&](int i) -> T& { return side == kLeft ? out(i, other) : out(other, i); });
    }
  });
}

template <class T>
int potrf_size(void*, int, int n, T*, int, int* elements) {
  *elements = 2 * n;
  return 0;
}

/// Returns 0, or the order of the first leading minor that is not positive definite.
template <class T>
int factor(Tile<T> l, int n) {
  for (int j = 0; j < n; ++j) {
    T pivot = l(j, j);
    for (int k = 0; k < j; ++k) pivot -= l(j, k) * l(j, k);
    if (!(pivot > 0)) return j + 1;
    l(j, j) = std::sqrt(pivot);
    for (int i = j + 1; i < n; ++i) {
      T sum = l(i, j);
      for (int k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
      l(i, j) = sum / l(j, j);
    }
  }
  return 0;
}

template <class T>
int potrf(void* handle, int uplo, int n, T* a, int lda, T* work, int elements, int* info) {
  return enqueue(handle, lda >= n && elements >= 2 * n, [=] {
    std::fill_n(work, elements, std::numeric_limits<T>::quiet_NaN());
    *info = factor(Tile<T>{a, lda, uplo != kLower}, n);
  });
}

}  // namespace

extern "C" {

unsigned long fake_cublas_handles() { return handles; }
void fake_cublas_fail(int status) { next_status = status; }

int cublasCreate_v2(void** handle) { return make(handle); }
int cublasDestroy_v2(void* handle) { return destroy(handle); }
int cublasSetStream_v2(void* handle, void* stream) { return set_stream(handle, stream); }
int cusolverDnCreate(void** handle) { return make(handle); }
int cusolverDnDestroy(void* handle) { return destroy(handle); }
int cusolverDnSetStream(void* handle, void* stream) { return set_stream(handle, stream); }

#define ROUTINES(letter, T)                                                                        \
  int cublas##letter##gemm_v2(void* handle, int trans_a, int trans_b, int m, int n, int k,         \
                              const T* alpha, const T* a, int lda, const T* b, int ldb,            \
                              const T* beta, T* c, int ldc) {                                      \
    return gemm(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);           \
  }                                                                                                \
  int cublas##letter##syrk_v2(void* handle, int uplo, int trans, int n, int k, const T* alpha,     \
                              const T* a, int lda, const T* beta, T* c, int ldc) {                 \
    return syrk(handle, uplo, trans, n, k, alpha, a, lda, beta, c, ldc);                           \
  }                                                                                                \
  int cublas##letter##trsm_v2(void* handle, int side, int uplo, int trans, int diag, int m, int n, \
                              const T* alpha, const T* a, int lda, T* b, int ldb) {                \
    return trsm(handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);                     \
  }                                                                                                \
  int cusolverDn##letter##potrf_bufferSize(void* handle, int uplo, int n, T* a, int lda,           \
                                           int* elements) {                                        \
    return potrf_size(handle, uplo, n, a, lda, elements);                                          \
  }                                                                                                \
  int cusolverDn##letter##potrf(void* handle, int uplo, int n, T* a, int lda, T* work,             \
                                int elements, int* info) {                                         \
    return potrf(handle, uplo, n, a, lda, work, elements, info);                                   \
  }

ROUTINES(S, float)
ROUTINES(D, double)

}  // extern "C"
