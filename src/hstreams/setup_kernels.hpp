// Setup work before the actions of a program, as weir kernels on the cores that need it.
#pragma once

#include <weir/weir.hpp>

namespace weir::hs {

class SetupKernels {
 public:
  explicit SetupKernels(const weir::Runtime& runtime);

  /// Writes to every page of operand 0.
  const weir::Kernel& prefault() const noexcept { return prefault_; }
  /// Starts the OpenMP threads of a place, on the thread that will call its sink functions.
  const weir::Kernel& start_openmp() const noexcept { return start_openmp_; }

 private:
  weir::Kernel prefault_, start_openmp_;
};

}  // namespace weir::hs
