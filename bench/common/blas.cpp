#include "common/blas.hpp"

#include <cstdlib>
#include <stdexcept>

#include <dlfcn.h>
#include <unistd.h>

namespace weir_bench {
namespace {

// The values of the CBLAS enumerations.
constexpr int column_major = 102, no_transpose = 111, transpose = 112, lower = 122, non_unit = 131,
              right = 142;

/// The kernels that OpenBLAS should use here, "" when its own choice cannot be wrong.
const char* best_kernels() {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq")) return "";
  return "SkylakeX";
}

bool knows_avx512(const std::string& kernels) {
  return kernels == "SkylakeX" || kernels == "Cooperlake" || kernels == "SapphireRapids" ||
         kernels == "Zen4" || kernels == "Zen5";
}

/// "OpenBLAS 0.3.21 NO_LAPACKE ..." to "OpenBLAS 0.3.21".
std::string name_and_version(const std::string& config) {
  const std::size_t version = config.find(' ');
  if (version == std::string::npos) return config;
  return config.substr(0, config.find(' ', version + 1));
}

}  // namespace

const Blas& Blas::open(char** argv) {
  static const Blas blas;
  const std::string best = best_kernels();
  if (!best.empty() && !knows_avx512(blas.kernels_) &&
      std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    setenv("OPENBLAS_CORETYPE", best.c_str(), 1);
    execv("/proc/self/exe", argv);
    throw std::runtime_error("cannot restart with OPENBLAS_CORETYPE=" + best);
  }
  return blas;
}

Blas::Blas() : library_(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  load(gemm_, "cblas_dgemm");
  load(trsm_, "cblas_dtrsm");
  load(syrk_, "cblas_dsyrk");
  load(potrf_, "dpotrf_");
  load(set_threads_, "openblas_set_num_threads");
  load(get_threads_, "openblas_get_num_threads");
  char* (*config)() = nullptr;
  char* (*kernels)() = nullptr;
  load(config, "openblas_get_config");
  load(kernels, "openblas_get_corename");
  kernels_ = kernels();
  description_ = name_and_version(config()) + ", " + kernels_ + " kernels";
}

template <class Function>
void Blas::load(Function*& function, const char* name) {
  void* const found = dlsym(library_, name);
  if (found == nullptr) throw std::runtime_error(std::string("OpenBLAS has no ") + name);
  function = reinterpret_cast<Function*>(found);
}

void Blas::potrf(int n, double* a, int ld) const {
  int info = 0;
  potrf_("L", &n, a, &ld, &info);
  if (info != 0) throw std::runtime_error("dpotrf failed with " + std::to_string(info));
}

void Blas::trsm(int n, const double* l, double* b) const {
  trsm_(column_major, right, lower, transpose, non_unit, n, n, 1, l, n, b, n);
}

void Blas::syrk(int n, const double* a, double* c) const {
  syrk_(column_major, lower, no_transpose, n, n, -1, a, n, 1, c, n);
}

void Blas::gemm_transposed(int n, const double* a, const double* b, double* c) const {
  gemm_(column_major, no_transpose, transpose, n, n, n, -1, a, n, b, n, 1, c, n);
}

void Blas::gemm(int n, const double* a, const double* b, double beta, double* c) const {
  gemm_(column_major, no_transpose, no_transpose, n, n, n, 1, a, n, b, n, beta, c, n);
}

}  // namespace weir_bench
