#include "forms/opencl_text.hpp"

namespace weir_bench {

void pipeline(double* x, int blocks, int block) {
  constexpr int kSlots = 3;  // one is uploaded, one computed, one downloaded
  const std::size_t items = block, bytes = block * sizeof(double);
  cl_platform_id platform;
  cl_device_id device;
  cl_command_queue queues[kSlots];
  cl_mem slots[kSlots];
  check(clGetPlatformIDs(1, &platform, nullptr));
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  cl_context context = made(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
  cl_program program = made(clCreateProgramWithSource(
      context, 1, const_cast<const char**>(&kernel_text), nullptr, nullptr));
  check(clBuildProgram(program, 1, &device, nullptr, nullptr, nullptr));
  cl_kernel kernel = made(clCreateKernel(program, "roots_kernel", nullptr));
  for (int slot = 0; slot < kSlots; ++slot) {
    queues[slot] = made(clCreateCommandQueue(context, device, 0, nullptr));
    slots[slot] = made(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
  }
  for (int i = 0; i < blocks; ++i) {
    cl_command_queue queue = queues[i % kSlots];
    cl_mem slot = slots[i % kSlots];
    double* const part = x + i * block;
    check(clEnqueueWriteBuffer(queue, slot, CL_FALSE, 0, bytes, part, 0, nullptr, nullptr));
    check(clSetKernelArg(kernel, 0, sizeof slot, &slot));
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr));
    check(clEnqueueReadBuffer(queue, slot, CL_FALSE, 0, bytes, part, 0, nullptr, nullptr));
    check(clFlush(queue));
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    check(clFinish(queues[slot]));
    check(clReleaseMemObject(slots[slot]));
    check(clReleaseCommandQueue(queues[slot]));
  }
  check(clReleaseKernel(kernel));
  check(clReleaseProgram(program));
  check(clReleaseContext(context));
}

}  // namespace weir_bench
