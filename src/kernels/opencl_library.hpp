// The OpenCL functions that the built-in kernels for OpenCL devices call.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <utility>

namespace weir::kernels {

#define WEIR_OPENCL_KERNEL_FUNCTIONS(each)                                                       \
  each(clBuildProgram) each(clCreateBuffer) each(clCreateKernel) each(clCreateProgramWithSource) \
      each(clEnqueueNDRangeKernel) each(clEnqueueReadBuffer) each(clGetCommandQueueInfo)         \
          each(clGetDeviceInfo) each(clGetEventInfo) each(clReleaseEvent) each(clReleaseKernel)  \
              each(clReleaseMemObject) each(clReleaseProgram) each(clSetKernelArg)               \
                  each(clWaitForEvents)

/// The loader, which the domain has opened.
struct OpenCl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it is a member's name
#define WEIR_OPENCL_KERNEL_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_OPENCL_KERNEL_FUNCTIONS(WEIR_OPENCL_KERNEL_MEMBER)
#undef WEIR_OPENCL_KERNEL_MEMBER
  // NOLINTNEXTLINE(readability-identifier-naming): named like the others; OpenCL 2.0
  cl_int(CL_API_CALL* clSetKernelArgSVMPointer)(cl_kernel kernel, cl_uint index,
                                                const void* address) = nullptr;

  /// Throws rt::Error{unavailable}.
  static const OpenCl& get();
  /// Throws rt::Error unless code is CL_SUCCESS.
  static void check(cl_int code, const char* what);
};

/// Owns an OpenCL object. Empty when default constructed.
template <class T, auto release>
class OpenClHandle {
 public:
  OpenClHandle() = default;
  explicit OpenClHandle(T value) noexcept : value_(value) {}
  OpenClHandle(OpenClHandle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  OpenClHandle& operator=(OpenClHandle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OpenClHandle() {
    if (value_ != nullptr) (OpenCl::get().*release)(value_);
  }
  T get() const noexcept { return value_; }

 private:
  T value_ = nullptr;
};

}  // namespace weir::kernels
