// The kernels that every runtime has: tiles of BLAS and LAPACK, memset, copy.
//
// They use only the public interface, like a user's kernels.
#pragma once

#include <weir/weir.h>

#include "kernels/blas_info.hpp"

namespace weir::kernels {

/// Registers them all, each also as its variant with the suffix ".team". `blas` names the library
/// ("openblas", "blis", "mkl", "reference", a path), null: WEIR_BLAS or the best one installed; the
/// first runtime of the process decides. Opens nothing yet. Throws rt::Error.
void register_builtin(weir_runtime& runtime, const char* blas);

/// Loads the libraries that a kernel of this name needs. Throws rt::Error{unavailable} with what to
/// install.
void prepare(const char* name);

/// Loads the BLAS if it is not loaded, and describes it. Does not throw.
BlasInfo blas_info();

}  // namespace weir::kernels
