#include "sparse_cholesky/front_kernels.hpp"

#include <type_traits>

#include <weir/portable.h>

#include <assembly.wk.h>
#include "sparse_cholesky/assembly.wk"

namespace weir::apps {

namespace {

constexpr std::size_t kCount = 3, kRows = 5;  ///< scalars

/// A call reads the values that it adds, and reads and writes the values that it adds to.
template <class T, std::size_t rows, std::size_t added>
weir_cost cost_of_adding(const weir_call* arguments) {
  const weir::Call call(arguments);
  const double elements =
      call.scalar<double>(rows) * static_cast<double>(call.operand(added).extent[1]);
  return {elements, elements * (3 * sizeof(T) + sizeof(weir_i32))};
}

template <class T>
constexpr bool single = std::is_same_v<T, float>;

template <class T>
weir::Kernel make_add_entries(const weir::Runtime& runtime) {
  return runtime.portable_kernel(
      {.kernel = single<T> ? &add_entries_float : &add_entries_double,
       .source = assembly_wk,
       .source_name = "assembly.wk",
       .name = single<T> ? "sparse.sadd_entries" : "sparse.dadd_entries",
       .shape = WEIR_KERNEL_SHAPE_SERIAL,
       .cost = cost_of_adding<T, kCount, 2>},
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(kCount), WIDTH)};
      });
}

template <class T>
weir::Kernel make_extend_add(const weir::Runtime& runtime) {
  return runtime.portable_kernel({.kernel = single<T> ? &extend_add_float : &extend_add_double,
                                  .source = assembly_wk,
                                  .source_name = "assembly.wk",
                                  .name = single<T> ? "sparse.sextend_add" : "sparse.dextend_add",
                                  .shape = WEIR_KERNEL_SHAPE_SERIAL,
                                  .cost = cost_of_adding<T, kRows, 1>},
                                 [](const weir::Call& call) {
                                   return weir::Groups{
                                       weir::group_count(call.scalar<std::size_t>(kRows), WIDTH),
                                       static_cast<std::uint32_t>(call.operand(1).extent[1])};
                                 });
}

}  // namespace

template <class T>
FrontKernels<T>::FrontKernels(const weir::Runtime& runtime)
    : set(runtime.kernel("mem.set")),
      gemm(runtime.kernel(single<T> ? "blas.sgemm" : "blas.dgemm")),
      syrk(runtime.kernel(single<T> ? "blas.ssyrk" : "blas.dsyrk")),
      trsm(runtime.kernel(single<T> ? "blas.strsm" : "blas.dtrsm")),
      potrf(runtime.kernel(single<T> ? "lapack.spotrf" : "lapack.dpotrf")),
      add_entries(make_add_entries<T>(runtime)),
      extend_add(make_extend_add<T>(runtime)) {}

template struct FrontKernels<float>;
template struct FrontKernels<double>;

}  // namespace weir::apps
