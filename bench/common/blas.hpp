// OpenBLAS, opened at run time with the right kernels for the processor.
#pragma once

#include <string>

namespace weir_bench {

/// The library behind the peers' tile kernels and whole-matrix calls. All matrices are column-major
/// and doubles.
class Blas {
 public:
  /// Opens OpenBLAS. When it picked kernels older than the processor and OPENBLAS_CORETYPE is not
  /// set, restarts the program with the right one: call it first in main(). Throws when missing.
  static const Blas& open(char** argv);

  /// How many threads a call uses.
  void set_threads(int count) const { set_threads_(count); }
  int threads() const { return get_threads_(); }
  /// Library, version and the kernels in use: "OpenBLAS 0.3.21, SkylakeX kernels".
  const std::string& description() const { return description_; }

  /// Factors the n x n matrix a = L L^T (lower). Throws when it is not positive definite.
  void potrf(int n, double* a, int ld) const;
  /// b := b l^-T with lower l, both n x n.
  void trsm(int n, const double* l, double* b) const;
  /// c := c - a a^T, lower part, n x n.
  void syrk(int n, const double* a, double* c) const;
  /// c := c - a b^T, n x n.
  void gemm_transposed(int n, const double* a, const double* b, double* c) const;
  /// c := beta c + a b, n x n.
  void gemm(int n, const double* a, const double* b, double beta, double* c) const;

 private:
  Blas();
  template <class Function>
  void load(Function*& function, const char* name);

  using Gemm = void(int, int, int, int, int, int, double, const double*, int, const double*, int,
                    double, double*, int);
  using Trsm = void(int, int, int, int, int, int, int, double, const double*, int, double*, int);
  using Syrk = void(int, int, int, int, int, double, const double*, int, double, double*, int);
  using Potrf = void(const char*, const int*, double*, const int*, int*);

  void* library_;
  Gemm* gemm_ = nullptr;
  Trsm* trsm_ = nullptr;
  Syrk* syrk_ = nullptr;
  Potrf* potrf_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  int (*get_threads_)() = nullptr;
  std::string kernels_, description_;
};

}  // namespace weir_bench
