#include "kernels/cuda_libraries.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/sys.hpp"
#include "kernels/blas_library.hpp"

namespace weir::kernels {

using rt::Error;
using rt::fail;
namespace sys = rt::sys;

namespace {

/// The texts of the message for a missing library.
struct Advice {
  const char* name;      ///< "cuBLAS"
  const char* variable;  ///< that names its file
  const char* package;   ///< in PyPI
};
constexpr Advice kCublas = {"cuBLAS", "WEIR_CUBLAS", "nvidia-cublas"};
constexpr Advice kCusolver = {"cuSOLVER", "WEIR_CUSOLVER", "nvidia-cusolver"};

SharedObject open_first(const Advice& advice, std::vector<const char*> files) {
  const char* const chosen = sys::environment(advice.variable);
  if (chosen != nullptr && *chosen != '\0') files = {chosen};
  SharedObject object;
  std::string reason;
  for (const char* file : files) {
    try {
      object.open(file);
      return object;
    } catch (const Error& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  fail(WEIR_STATUS_UNAVAILABLE,
       "there is no {} for the tile kernels: {}; install the package {} from PyPI or the CUDA "
       "toolkit, or set {} to the path of the library",
       advice.name, reason, advice.package, advice.variable);
}

template <class Function>
void find(const SharedObject& object, const char* library, const std::string& name,
          Function*& function) {
  function = object.find<Function>(name.c_str());
  if (function == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} has no {}: that of CUDA 12 or newer is needed", library,
         name);
  }
}

template <class T>
void bind_cublas(const SharedObject& object, const std::string& letter, CublasRoutines<T>& found) {
  find(object, kCublas.name, "cublas" + letter + "gemm_v2", found.gemm);
  find(object, kCublas.name, "cublas" + letter + "syrk_v2", found.syrk);
  find(object, kCublas.name, "cublas" + letter + "trsm_v2", found.trsm);
}

Cublas open_cublas() {
  const SharedObject object =
      open_first(kCublas, {"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  Cublas found{};
  find(object, kCublas.name, "cublasCreate_v2", found.create);
  find(object, kCublas.name, "cublasDestroy_v2", found.destroy);
  find(object, kCublas.name, "cublasSetStream_v2", found.set_stream);
  bind_cublas(object, "S", found.s);
  bind_cublas(object, "D", found.d);
  return found;
}

template <class T>
void bind_cusolver(const SharedObject& object, const std::string& letter,
                   CusolverRoutines<T>& found) {
  find(object, kCusolver.name, "cusolverDn" + letter + "potrf_bufferSize", found.potrf_size);
  find(object, kCusolver.name, "cusolverDn" + letter + "potrf", found.potrf);
}

Cusolver open_cusolver() {
  const SharedObject object =
      open_first(kCusolver, {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"});
  Cusolver found{};
  find(object, kCusolver.name, "cusolverDnCreate", found.create);
  find(object, kCusolver.name, "cusolverDnDestroy", found.destroy);
  find(object, kCusolver.name, "cusolverDnSetStream", found.set_stream);
  bind_cusolver(object, "S", found.s);
  bind_cusolver(object, "D", found.d);
  return found;
}

/// The statuses that the two libraries have in common.
const char* meaning(int status) noexcept {
  switch (status) {
    case 1: return "it is not initialised: its version does not fit the driver, or memory is short";
    case 2:
    case 3: return "no memory for its workspace";
    case 7: return "an invalid value";
    case 8: return "it has no code for this device";
    case 13: return "the device could not execute it";
    default: return "an error of the library";
  }
}

void check_status(const char* library, int status, const char* what) {
  constexpr int kAllocationFailed = 3, kNoResource = 2;
  if (status == 0) return;
  const bool memory = status == kAllocationFailed || status == kNoResource;
  fail(memory ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR,
       "{}: {} fails with status {}: {}", library, what, status, meaning(status));
}

}  // namespace

const Cublas& Cublas::get() {
  static const Cublas library = open_cublas();
  return library;
}
void Cublas::check(int status, const char* what) { check_status(kCublas.name, status, what); }

const Cusolver& Cusolver::get() {
  static const Cusolver library = open_cusolver();
  return library;
}
void Cusolver::check(int status, const char* what) { check_status(kCusolver.name, status, what); }

}  // namespace weir::kernels
