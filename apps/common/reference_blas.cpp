#include "common/reference_blas.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weir::apps {

namespace {

constexpr int kColumnMajor = 102, kNoTrans = 111, kTrans = 112;

/// Looks for the name, and as libraries in wheels of Python have it.
template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return;
  function = reinterpret_cast<Function*>(dlsym(library, (std::string("scipy_") + name).c_str()));
}

/// The product in plain loops, where there is no BLAS.
template <class T>
void multiply_plainly(int, int trans_a, int trans_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  std::vector<T> column(static_cast<std::size_t>(m));
  for (int j = 0; j < n; ++j) {
    T* const out = c + std::ptrdiff_t{j} * ldc;
    std::fill(column.begin(), column.end(), T{0});
    for (int p = 0; p < k; ++p) {
      const T factor =
          trans_b == kNoTrans ? b[p + std::ptrdiff_t{j} * ldb] : b[j + std::ptrdiff_t{p} * ldb];
      const T* const from = trans_a == kNoTrans ? a + std::ptrdiff_t{p} * lda : a + p;
      const std::ptrdiff_t step = trans_a == kNoTrans ? 1 : lda;
      for (int i = 0; i < m; ++i) column[static_cast<std::size_t>(i)] += from[i * step] * factor;
    }
    for (int i = 0; i < m; ++i) {
      const T product = alpha * column[static_cast<std::size_t>(i)];
      out[i] = beta == T{0} ? product : product + beta * out[i];
    }
  }
}

/// Returns the function that sets the library's number of threads, null when it has none.
auto find_set_threads(void* library) {
  void (*found)(int) = nullptr;
  for (const char* name :
       {"openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (found == nullptr) find(library, name, found);
  }
  return found;
}

}  // namespace

ReferenceBlas::Library ReferenceBlas::open(const weir::Runtime& runtime) {
  const auto description = nlohmann::json::parse(runtime.describe());
  const auto& blas = description.at("blas");
  if (!blas.at("available").get<bool>()) {
    throw weir::Error(WEIR_STATUS_UNAVAILABLE, blas.at("problem").get<std::string>());
  }
  Library found;
  found.cores = description.at("machine").at("cores").get<int>();
  found.plain = blas.at("name") == "plain";
  if (found.plain) {
    found.single = multiply_plainly<float>;
    found.twice = multiply_plainly<double>;
    return found;
  }
  const auto path = blas.at("library").get<std::string>();
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object != nullptr) {
    find(object, "cblas_sgemm", found.single);
    find(object, "cblas_dgemm", found.twice);
    found.set_threads = find_set_threads(object);
  }
  if (found.single == nullptr || found.twice == nullptr) {
    throw weir::Error(WEIR_STATUS_UNAVAILABLE, path + " has no cblas_dgemm to compare with");
  }
  return found;
}

template <class T>
void ReferenceBlas::multiply(std::size_t m, std::size_t n, std::size_t k,
                             std::type_identity_t<T> alpha, Factor<T> a, Factor<T> b,
                             std::type_identity_t<T> beta, T* c, std::size_t stride) const {
  if (m == 0 || n == 0) return;
  const Library& blas = library();
  if (blas.set_threads != nullptr) blas.set_threads(blas.cores);
  const auto integer = [](std::size_t value) { return static_cast<int>(value); };
  const auto gemm = [&] {
    if constexpr (std::is_same_v<T, float>) {
      return blas.single;
    } else {
      return blas.twice;
    }
  }();
  gemm(kColumnMajor, a.transposed ? kTrans : kNoTrans, b.transposed ? kTrans : kNoTrans, integer(m),
       integer(n), integer(k), alpha, a.data, integer(a.stride), b.data, integer(b.stride), beta, c,
       integer(stride));
  if (blas.set_threads != nullptr) blas.set_threads(1);  // as the kernels of the runtime want it
}

template <class T>
double ReferenceBlas::gemm_peak(std::size_t order) const {
  constexpr int kRuns = 4;
  if (library().plain) return 0;
  const std::size_t n = std::clamp<std::size_t>(order, 512, 2048);
  std::vector<T> a(n * n), c(n * n);
  std::minstd_rand random(1);
  for (T& element : a) element = static_cast<T>(random()) / static_cast<T>(random.max());
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    multiply<T>(n, n, n, T{1}, {a.data(), n}, {a.data(), n}, T{0}, c.data(), n);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2 * std::pow(static_cast<double>(n), 3) / taken.count());
  }
  return best;
}

template void ReferenceBlas::multiply(std::size_t, std::size_t, std::size_t, float, Factor<float>,
                                      Factor<float>, float, float*, std::size_t) const;
template void ReferenceBlas::multiply(std::size_t, std::size_t, std::size_t, double, Factor<double>,
                                      Factor<double>, double, double*, std::size_t) const;
template double ReferenceBlas::gemm_peak<float>(std::size_t) const;
template double ReferenceBlas::gemm_peak<double>(std::size_t) const;

}  // namespace weir::apps
