#include "kernels/tile_kernels.hpp"

#include "kernels/blas_library.hpp"
#include "kernels/team_blas.hpp"
#include "kernels/tile_calls.hpp"

namespace weir::kernels {

namespace {

using rt::fail;

template <class T>
struct HostPotrf : Potrf<T> {
  using Potrf<T>::Potrf;

  void run(const TeamBlas<T>& blas) const {
    int failed = blas.potrf(this->uplo, this->a);
    for (int i = 0; failed == 0 && i < this->a.rows; ++i) {
      if (!(this->a(i, i) > 0)) failed = i + 1;  // libraries accept NaN
    }
    if (failed == 0) return;
    fail(WEIR_STATUS_KERNEL_ERROR, "the leading minor of order {} is not positive definite",
         this->first + failed);
  }
};

template <class T>
struct HostGetrf : Getrf<T> {
  using Getrf<T>::Getrf;

  void run(const TeamBlas<T>& blas) const {
    const int zero = blas.getrf(this->a, this->pivots.data);
    if (zero > 0) {
      fail(WEIR_STATUS_KERNEL_ERROR, "the matrix is singular: pivot {} of its factor U is zero",
           zero);
    }
  }
};

template <class T, template <class> class Routine>
void call_routine(const weir_call& call) {
  const BlasLibrary& library = BlasLibrary::instance();
  const OneThread one_thread(library);
  Routine<T>(call).run(TeamBlas<T>(library, call.team));
}

template <class T, template <class> class Routine>
weir_cost routine_cost(const weir_call& call) {
  return Routine<T>(call).cost();
}

template <class T, template <class> class Routine>
constexpr BuiltinKernel kernel(const char* name) {
  return {name, run_kernel<call_routine<T, Routine>>, cost_of<routine_cost<T, Routine>>};
}

constexpr BuiltinKernel kKernels[] = {
    kernel<float, Gemm>("blas.sgemm"),         kernel<double, Gemm>("blas.dgemm"),
    kernel<float, Syrk>("blas.ssyrk"),         kernel<double, Syrk>("blas.dsyrk"),
    kernel<float, Trsm>("blas.strsm"),         kernel<double, Trsm>("blas.dtrsm"),
    kernel<float, HostPotrf>("lapack.spotrf"), kernel<double, HostPotrf>("lapack.dpotrf"),
    kernel<float, HostGetrf>("lapack.sgetrf"), kernel<double, HostGetrf>("lapack.dgetrf"),
};

}  // namespace

std::span<const BuiltinKernel> tile_kernels() { return kKernels; }

}  // namespace weir::kernels
