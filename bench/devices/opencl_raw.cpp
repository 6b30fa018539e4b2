// What an expert writes by hand for an OpenCL device that runs code of the host: the peer of weir.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdlib>
#include <cstring>

#include "common/program.hpp"

namespace weir_bench {
namespace {

void check(cl_int code, const char* what) {
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

 private:
  cl_device_id id_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

void CL_CALLBACK nothing(void*) {}

/// Nanoseconds for each of many empty native kernels: in order, or independent out of order.
double kernels(bool in_order, long count) {
  const Device device(in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        void* argument = nullptr;
        check(clEnqueueNativeKernel(device.queue(), nothing, &argument, sizeof argument, 0, nullptr,
                                    nullptr, 0, nullptr, nullptr),
              "enqueueing a kernel");
      }
      device.finish();
    });
  };
  return median(repeat(1, 5, once)) / static_cast<double>(count) * 1e9;
}

/// GB/s of copies of so many bytes to the device, or from it.
double copies(bool to_device, std::size_t bytes, long count) {
  const Device device(0);
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(device.context(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
  check(code, "making a buffer");
  std::vector<char> host(bytes, 1);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        check(to_device ? clEnqueueWriteBuffer(device.queue(), buffer, CL_FALSE, 0, bytes,
                                               host.data(), 0, nullptr, nullptr)
                        : clEnqueueReadBuffer(device.queue(), buffer, CL_FALSE, 0, bytes,
                                              host.data(), 0, nullptr, nullptr),
              "enqueueing a copy");
      }
      device.finish();
    });
  };
  const double seconds = median(repeat(2, 5, once));
  clReleaseMemObject(buffer);
  return static_cast<double>(bytes) * static_cast<double>(count) / seconds * 1e-9;
}

nlohmann::json run(const Arguments& arguments) {
  const std::string& verb = arguments.verb();
  const long actions = arguments.number("--actions", 10'000);
  if (verb == "chain") return {{"value", kernels(true, actions)}, {"config", "one in-order queue"}};
  if (verb == "independent") {
    return {{"value", kernels(false, actions)}, {"config", "one out-of-order queue"}};
  }
  if (verb != "h2d" && verb != "d2h") throw std::invalid_argument("unknown: " + verb);
  const long bytes = arguments.number("--bytes", 1 << 20), count = arguments.number("--count", 64);
  return {{"value", copies(verb == "h2d", static_cast<std::size_t>(bytes), count)},
          {"config", "one in-order queue"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
