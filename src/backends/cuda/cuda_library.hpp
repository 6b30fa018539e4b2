// The CUDA driver, opened at run time, so that programs start on machines without it.
#pragma once

#include <cuda.h>

#include <string>

#include "backend/owned_object.hpp"
#include "base/error.hpp"

namespace weir::rt {

// clang-format off
#define WEIR_CUDA_FUNCTIONS(each)                                                                  \
  each(cuCtxFromGreenCtx) each(cuCtxPopCurrent) each(cuCtxPushCurrent) each(cuCtxSetCurrent)       \
  each(cuDevResourceGenerateDesc) each(cuDevSmResourceSplitByCount) each(cuDeviceCanAccessPeer)    \
  each(cuDeviceGet) each(cuDeviceGetAttribute) each(cuDeviceGetCount) each(cuDeviceGetDevResource) \
  each(cuDeviceGetName) each(cuDevicePrimaryCtxRelease) each(cuDevicePrimaryCtxRetain)             \
  each(cuDriverGetVersion) each(cuEventCreate) each(cuEventDestroy) each(cuEventElapsedTime)       \
  each(cuEventRecord) each(cuEventSynchronize) each(cuGetErrorName) each(cuGetErrorString)         \
  each(cuGreenCtxCreate) each(cuGreenCtxDestroy) each(cuGreenCtxStreamCreate) each(cuInit)         \
  each(cuKernelGetAttribute) each(cuKernelGetParamInfo) each(cuKernelSetAttribute)                 \
  each(cuLaunchCooperativeKernel) each(cuLaunchHostFunc) each(cuLaunchKernel)                      \
  each(cuLibraryGetKernel) each(cuLibraryLoadData) each(cuLibraryUnload) each(cuMemAllocAsync)     \
  each(cuMemAllocFromPoolAsync) each(cuMemFree) each(cuMemFreeAsync) each(cuMemFreeHost)           \
  each(cuMemGetInfo) each(cuMemHostAlloc) each(cuMemHostGetDevicePointer) each(cuMemHostRegister)  \
  each(cuMemHostUnregister) each(cuMemPoolCreate) each(cuMemPoolDestroy) each(cuMemPoolSetAccess)  \
  each(cuMemPoolSetAttribute) each(cuMemcpy2DAsync) each(cuMemcpyDtoDAsync)                        \
  each(cuMemcpyDtoHAsync) each(cuMemcpyHtoDAsync) each(cuMemsetD2D8Async) each(cuMemsetD8Async)    \
  each(cuOccupancyMaxActiveBlocksPerMultiprocessor) each(cuPointerGetAttribute)                    \
  each(cuStreamCreate) each(cuStreamDestroy) each(cuStreamQuery) each(cuStreamSynchronize)         \
  each(cuStreamWaitEvent) each(cuStreamWriteValue64)
// clang-format on

/// The functions that weir calls, under their own names.
struct CudaLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it is a member's name
#define WEIR_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_CUDA_FUNCTIONS(WEIR_CUDA_MEMBER)
#undef WEIR_CUDA_MEMBER

  /// Opens and initialises the driver on first use: WEIR_CUDA_DRIVER, or libcuda.so.1. Throws
  /// Error{unavailable} that says what to install.
  static const CudaLibrary& get();
};

/// "CUDA_ERROR_OUT_OF_MEMORY (2: out of memory)". Not before CudaLibrary::get() has returned.
std::string cuda_error(CUresult code);

/// Throws Error unless code is CUDA_SUCCESS. `what` names the call in the message.
void check_cuda(CUresult code, const std::string& what);

/// Returns whether a call that returned this code leaves the context unusable.
bool breaks_context(CUresult code) noexcept;

/// Makes a context current on this thread for the lifetime of the object.
class CudaScope {
 public:
  /// Throws Error.
  explicit CudaScope(CUcontext context);
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  ~CudaScope();
};

template <class T, auto release>
using CudaOwned = OwnedObject<CudaLibrary, T, release>;
using CudaStream = CudaOwned<CUstream, &CudaLibrary::cuStreamDestroy>;
using CudaEvent = CudaOwned<CUevent, &CudaLibrary::cuEventDestroy>;
using CudaPool = CudaOwned<CUmemoryPool, &CudaLibrary::cuMemPoolDestroy>;
using CudaPinned = CudaOwned<void*, &CudaLibrary::cuMemFreeHost>;
using CudaGreenContext = CudaOwned<CUgreenCtx, &CudaLibrary::cuGreenCtxDestroy>;
using CudaCode = CudaOwned<CUlibrary, &CudaLibrary::cuLibraryUnload>;

/// Creates an event in the current context, with timing or without. Throws Error.
CudaEvent make_cuda_event(bool timed);
/// Creates a stream in the current context that does not synchronise with the default stream.
/// Throws Error.
CudaStream make_cuda_stream();
/// Allocates page-locked host memory that every device can access. Throws Error.
CudaPinned make_cuda_pinned(std::size_t bytes);

}  // namespace weir::rt
