#include "suite.hpp"

namespace weir::conformance {
namespace {

/// Why there is no device that can be used, "": there is.
std::string missing() {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer does not see the locks of the driver";
#endif
  try {
    const Runtime runtime("opencl:0");
    return runtime.domain(0).info().cores < 2 ? "the OpenCL device has one unit only" : "";
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_UNAVAILABLE) throw;
    return error.what();
  }
}

const Registration apart({
    .name = "opencl",
    .domain = "opencl:0,alias=off",
    .small = "opencl:0,alias=off,memory=32KiB",
    .kernels = host_code,
    .exceptions = {},
    .missing = missing,
});

const Registration shared({
    .name = "opencl_shared",
    .domain = "opencl:0",
    .small = "opencl:0,memory=32KiB",
    .kernels = host_code,
    .exceptions = {},
    .missing = missing,
});

}  // namespace
}  // namespace weir::conformance
