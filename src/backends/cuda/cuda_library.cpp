#include "backends/cuda/cuda_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "base/config.hpp"

namespace weir::rt {

namespace {

#define WEIR_CUDA_TEXT(name) #name  // expanded one step later than the macros of cuda.h
#define WEIR_CUDA_NAME(name) WEIR_CUDA_TEXT(name)

CudaLibrary find_functions(void* library, const char* path) {
  CudaLibrary found;
#define WEIR_CUDA_FIND(name)                                                                 \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, WEIR_CUDA_NAME(name))); \
  if (found.name == nullptr) {                                                               \
    fail(WEIR_STATUS_UNAVAILABLE,                                                            \
         "the CUDA driver {} has no {}: driver 570 (CUDA 12.8) or newer is needed", path,    \
         WEIR_CUDA_NAME(name));                                                              \
  }
  WEIR_CUDA_FUNCTIONS(WEIR_CUDA_FIND)
#undef WEIR_CUDA_FIND
  return found;
}

std::string text_of(const CudaLibrary& cu, CUresult code) {
  const char *name = nullptr, *text = nullptr;
  if (cu.cuGetErrorName(code, &name) != CUDA_SUCCESS) {
    return fmt::format("CUDA error {}", static_cast<int>(code));
  }
  cu.cuGetErrorString(code, &text);
  return fmt::format("{} ({}: {})", name, static_cast<int>(code), text == nullptr ? "" : text);
}

CudaLibrary open_library() {
  const char* const path = config::cuda_driver();
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "there is no CUDA on this machine: {}; install NVIDIA's driver (Debian: nvidia-driver), "
         "or set WEIR_CUDA_DRIVER to the path of its libcuda.so.1",
         dlerror());
  }
  const CudaLibrary found = find_functions(library, path);
  const CUresult code = found.cuInit(0);
  if (code != CUDA_SUCCESS) {
    fail(WEIR_STATUS_UNAVAILABLE, "the CUDA driver {} finds no device that it can use: {}", path,
         text_of(found, code));
  }
  return found;
}

// clang-format off
constexpr std::array kBreaking = {
  CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_ECC_UNCORRECTABLE,
  CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED, CUDA_ERROR_ILLEGAL_ADDRESS,
  CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ASSERT,
  CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS,
  CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED,
  CUDA_ERROR_TENSOR_MEMORY_LEAK, CUDA_ERROR_EXTERNAL_DEVICE, CUDA_ERROR_UNKNOWN
};
// clang-format on

}  // namespace

const CudaLibrary& CudaLibrary::get() {
  static const CudaLibrary library = open_library();
  return library;
}

std::string cuda_error(CUresult code) { return text_of(CudaLibrary::get(), code); }

void check_cuda(CUresult code, const std::string& what) {
  if (code == CUDA_SUCCESS) return;
  weir_status status = WEIR_STATUS_DEVICE_ERROR;
  if (code == CUDA_ERROR_OUT_OF_MEMORY) status = WEIR_STATUS_OUT_OF_MEMORY;
  if (code == CUDA_ERROR_NOT_SUPPORTED) status = WEIR_STATUS_UNSUPPORTED;
  fail(status, "{}: {}", what, cuda_error(code));
}

bool breaks_context(CUresult code) noexcept {
  return std::find(kBreaking.begin(), kBreaking.end(), code) != kBreaking.end();
}

CudaScope::CudaScope(CUcontext context) {
  check_cuda(CudaLibrary::get().cuCtxPushCurrent(context), "using a CUDA context");
}

CudaScope::~CudaScope() {
  CUcontext context = nullptr;
  CudaLibrary::get().cuCtxPopCurrent(&context);
}

CudaEvent make_cuda_event(bool timed) {
  CUevent event = nullptr;
  check_cuda(
      CudaLibrary::get().cuEventCreate(&event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
      "making a CUDA event");
  return CudaEvent(event);
}

CudaStream make_cuda_stream() {
  CUstream stream = nullptr;
  check_cuda(CudaLibrary::get().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
             "making a CUDA stream");
  return CudaStream(stream);
}

CudaPinned make_cuda_pinned(std::size_t bytes) {
  void* address = nullptr;
  check_cuda(CudaLibrary::get().cuMemHostAlloc(
                 &address, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
             fmt::format("locking {} bytes of host memory", bytes));
  return CudaPinned(address);
}

}  // namespace weir::rt
