// The OpenCL loader, opened at run time, so that programs start on machines without it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue()
#include <CL/cl.h>

#include <cstdint>
#include <optional>
#include <string>

#include "backend/owned_object.hpp"
#include "base/error.hpp"

namespace weir::rt {

// clang-format off
#define WEIR_OPENCL_FUNCTIONS(each)                                                                \
  each(clBuildProgram) each(clCreateBuffer) each(clCreateCommandQueue) each(clCreateContext)       \
  each(clCreateKernel) each(clCreateProgramWithBinary) each(clCreateProgramWithSource)             \
  each(clCreateSubDevices) each(clEnqueueBarrierWithWaitList) each(clEnqueueCopyBuffer)            \
  each(clEnqueueCopyBufferRect) each(clEnqueueFillBuffer) each(clEnqueueMarkerWithWaitList)        \
  each(clEnqueueNDRangeKernel) each(clEnqueueNativeKernel) each(clEnqueueReadBuffer)               \
  each(clEnqueueReadBufferRect) each(clEnqueueWriteBufferRect) each(clFinish) each(clFlush)        \
  each(clGetCommandQueueInfo) each(clGetDeviceIDs) each(clGetDeviceInfo) each(clGetEventInfo)      \
  each(clGetEventProfilingInfo) each(clGetKernelInfo) each(clGetKernelWorkGroupInfo)               \
  each(clGetPlatformIDs) each(clGetPlatformInfo) each(clGetProgramBuildInfo)                       \
  each(clGetProgramInfo) each(clReleaseCommandQueue) each(clReleaseContext) each(clReleaseEvent)   \
  each(clReleaseKernel) each(clReleaseMemObject) each(clReleaseProgram) each(clRetainEvent)        \
  each(clSetEventCallback) each(clSetKernelArg) each(clWaitForEvents)
// clang-format on
/// Of OpenCL 2.0: nullptr where the loader is older.
#define WEIR_OPENCL_2_FUNCTIONS(each) \
  each(clSetKernelArgSVMPointer) each(clSVMAlloc) each(clSVMFree)

/// The functions that weir calls, under their own names.
struct OpenClLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it is a member's name
#define WEIR_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  WEIR_OPENCL_FUNCTIONS(WEIR_OPENCL_MEMBER)
  WEIR_OPENCL_2_FUNCTIONS(WEIR_OPENCL_MEMBER)
#undef WEIR_OPENCL_MEMBER

  /// Opens the loader on first use. Throws Error{unavailable} that says what to install.
  static const OpenClLibrary& get();
};

/// "CL_OUT_OF_RESOURCES (-5)".
std::string opencl_error(cl_int code);

/// Returns whether a code reports a lack of memory, as opposed to another failure.
weir_status opencl_failure(cl_int code) noexcept;

/// Throws Error unless code is CL_SUCCESS. `what` names the call in the message.
void check_opencl(cl_int code, const std::string& what);

template <class T, auto release>
using OpenClOwned = OwnedObject<OpenClLibrary, T, release>;
using OpenClContext = OpenClOwned<cl_context, &OpenClLibrary::clReleaseContext>;
using OpenClQueue = OpenClOwned<cl_command_queue, &OpenClLibrary::clReleaseCommandQueue>;
using OpenClBuffer = OpenClOwned<cl_mem, &OpenClLibrary::clReleaseMemObject>;
using OpenClProgram = OpenClOwned<cl_program, &OpenClLibrary::clReleaseProgram>;
using OpenClKernel = OpenClOwned<cl_kernel, &OpenClLibrary::clReleaseKernel>;
using OpenClEvent = OpenClOwned<cl_event, &OpenClLibrary::clReleaseEvent>;

/// Returns a fact about a device, T{} where the driver does not know it.
template <class T>
T opencl_fact(cl_device_id device, cl_device_info what) noexcept {
  T value{};
  OpenClLibrary::get().clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

/// Whether a queue executes in order, and keeps times of its commands.
enum class OpenClQueueKind : std::uint8_t {
  untimed,   ///< out of order, where the driver supports it
  timed,     ///< likewise, with times
  in_order,  ///< with times
};
/// Throws Error.
OpenClQueue make_opencl_queue(cl_context context, cl_device_id device, OpenClQueueKind kind);
/// Throws Error.
OpenClContext make_opencl_context(cl_platform_id platform, cl_device_id device);

/// Returns the status of a command: CL_COMPLETE; greater while it is in flight, less after a
/// failure.
cl_int opencl_status(cl_event event) noexcept;
/// Returns a time of a command on the device's clock, in nanoseconds.
std::int64_t opencl_time(cl_event event, cl_profiling_info what) noexcept;
/// Returns the offset from the device's clock to the host's, nullopt where the driver has no times.
/// Throws Error.
std::optional<std::int64_t> opencl_clock_offset(cl_command_queue queue, cl_device_id device);

}  // namespace weir::rt
