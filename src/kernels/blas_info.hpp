// The description of the BLAS in use, as reported to the program.
#pragma once

#include <string>

namespace weir::kernels {

/// The BLAS in use.
struct BlasInfo {
  bool available = false;
  std::string name;     ///< "openblas", "blis", "mkl", "reference" or "plain"
  std::string library;  ///< file that was loaded
  std::string kernels;  ///< processor of its kernels, "SkylakeX"; "" when not reported
  std::string version;  ///< "" when not reported
  std::string problem;  ///< why it is not available, or slower than it could be
};

}  // namespace weir::kernels
