// An OpenCL device for programs that use it without weir.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "common/program.hpp"

namespace weir_bench {

inline void check(cl_int code, const char* what) {
  if (code != CL_SUCCESS) {
    throw std::runtime_error(std::string(what) + " failed with " + std::to_string(code));
  }
}

/// The first device of the first platform, with one queue.
class Device {
 public:
  explicit Device(cl_command_queue_properties properties) {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "listing platforms");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id_, nullptr), "listing devices");
    cl_int code = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code);
    check(code, "making a context");
    queue_ = clCreateCommandQueue(context_, id_, properties, &code);
    check(code, "making a queue");
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }

  cl_command_queue queue() const { return queue_; }
  cl_context context() const { return context_; }
  void finish() const { check(clFinish(queue_), "waiting"); }

  cl_mem buffer(std::size_t bytes) const {
    cl_int code = CL_SUCCESS;
    cl_mem made = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    check(code, "making a buffer");
    return made;
  }
  /// Compiles a kernel of a text.
  cl_kernel kernel(const char* text, const char* name) const {
    cl_int code = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
    check(code, "making a program");
    check(clBuildProgram(program, 1, &id_, "-cl-std=CL1.2", nullptr, nullptr), "compiling");
    cl_kernel made = clCreateKernel(program, name, &code);
    check(code, "making a kernel");
    clReleaseProgram(program);
    return made;
  }
  void write(cl_mem buffer, const void* from, std::size_t bytes) const {
    check(clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, 0, bytes, from, 0, nullptr, nullptr),
          "writing");
  }
  void read(cl_mem buffer, void* to, std::size_t bytes) const {
    check(clEnqueueReadBuffer(queue_, buffer, CL_TRUE, 0, bytes, to, 0, nullptr, nullptr),
          "reading");
  }

 private:
  cl_device_id id_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

template <class T>
void set_argument(cl_kernel kernel, cl_uint index, const T& value) {
  check(clSetKernelArg(kernel, index, sizeof value, &value), "setting an argument");
}

}  // namespace weir_bench
