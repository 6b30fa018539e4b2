// The kernels of a factorisation by fronts.
#pragma once

#include <weir/weir.hpp>

namespace weir::apps {

/// Built-in kernels on tiles, and portable ones that assemble fronts (assembly.wk). T is float or
/// double.
template <class T>
struct FrontKernels {
  explicit FrontKernels(const weir::Runtime& runtime);

  weir::Kernel set, gemm, syrk, trsm, potrf;
  /// (ld, top, first, count): front read-write; places and values read.
  weir::Kernel add_entries;
  /// (ld, ld of child, top, first, skip, rows): front read-write; child and map read.
  weir::Kernel extend_add;
};

extern template struct FrontKernels<float>;
extern template struct FrontKernels<double>;

}  // namespace weir::apps
