// The kernels that every runtime has: tiles of BLAS and LAPACK, memset, copy.
//
// They are written against the public interface alone, as a user's kernels are.
#pragma once

#include <weir/weir.h>

#include "kernels/blas_info.hpp"

namespace weir::kernels {

/// Registers them all, each also as its variant with the suffix ".team". `blas` names the library
/// ("openblas", "blis", "mkl", "reference", a path), null: WEIR_BLAS or the best one installed; the
/// first runtime of the process decides. Opens nothing yet. Throws rt::Error.
void register_builtin(weir_runtime& runtime, const char* blas);

/// Makes sure that what a kernel of this name needs is loaded. Throws rt::Error{unavailable} with
/// what to install.
void prepare(const char* name);

/// Loads the BLAS if need be and says what it is. Does not throw.
BlasInfo blas_info();

}  // namespace weir::kernels
