// What the program is told about the BLAS in use.
#pragma once

#include <string>

namespace weir::kernels {

/// The BLAS in use.
struct BlasInfo {
  bool available = false;
  std::string name;     ///< "openblas", "blis", "mkl" or "reference"
  std::string library;  ///< file that was loaded
  std::string kernels;  ///< processor it has kernels for, "SkylakeX"; "" when it does not say
  std::string version;  ///< "" when it does not say
  std::string problem;  ///< why it is not available, or slower than it could be
};

}  // namespace weir::kernels
