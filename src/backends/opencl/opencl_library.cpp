#include "backends/opencl/opencl_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

/// PoCL, a driver for processors, ends the process when hwloc finds no memory.
void require_sysfs() {
  constexpr const char* kProcessors = "/sys/devices/system/cpu";
  if (access(kProcessors, F_OK) == 0) return;
  fail(WEIR_STATUS_UNAVAILABLE,
       "OpenCL is not opened without {}, which its drivers need: mount -t sysfs sysfs /sys",
       kProcessors);
}

OpenClLibrary open_library() {
  require_sysfs();
  void* const library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "there is no OpenCL on this machine: {}; install a loader and a driver (Debian: "
         "ocl-icd-libopencl1 and, for processors, pocl-opencl-icd)",
         dlerror());
  }
  OpenClLibrary found;
#define WEIR_OPENCL_FIND(name) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name));
  WEIR_OPENCL_FUNCTIONS(WEIR_OPENCL_FIND)
  WEIR_OPENCL_2_FUNCTIONS(WEIR_OPENCL_FIND)
#undef WEIR_OPENCL_FIND
#define WEIR_OPENCL_CHECK(name)                                                          \
  if (found.name == nullptr) {                                                           \
    fail(WEIR_STATUS_UNAVAILABLE, "{} has no {}: OpenCL 1.2 is needed", kLoader, #name); \
  }
  WEIR_OPENCL_FUNCTIONS(WEIR_OPENCL_CHECK)
#undef WEIR_OPENCL_CHECK
  return found;
}

struct Name {
  cl_int code;
  const char* text;
};
#define WEIR_OPENCL_NAME(code) {code, #code},
// clang-format off
constexpr Name kNames[] = {
  WEIR_OPENCL_NAME(CL_DEVICE_NOT_FOUND) WEIR_OPENCL_NAME(CL_DEVICE_NOT_AVAILABLE)
  WEIR_OPENCL_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE) WEIR_OPENCL_NAME(CL_OUT_OF_RESOURCES)
  WEIR_OPENCL_NAME(CL_OUT_OF_HOST_MEMORY) WEIR_OPENCL_NAME(CL_MEM_COPY_OVERLAP)
  WEIR_OPENCL_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
  WEIR_OPENCL_NAME(CL_DEVICE_PARTITION_FAILED) WEIR_OPENCL_NAME(CL_INVALID_VALUE)
  WEIR_OPENCL_NAME(CL_INVALID_DEVICE) WEIR_OPENCL_NAME(CL_INVALID_CONTEXT)
  WEIR_OPENCL_NAME(CL_INVALID_QUEUE_PROPERTIES) WEIR_OPENCL_NAME(CL_INVALID_MEM_OBJECT)
  WEIR_OPENCL_NAME(CL_INVALID_OPERATION) WEIR_OPENCL_NAME(CL_INVALID_BUFFER_SIZE)
  WEIR_OPENCL_NAME(CL_INVALID_DEVICE_PARTITION_COUNT)
};
// clang-format on
#undef WEIR_OPENCL_NAME

}  // namespace

const OpenClLibrary& OpenClLibrary::get() {
  static const OpenClLibrary library = open_library();
  return library;
}

std::string opencl_error(cl_int code) {
  for (const Name& name : kNames) {
    if (name.code == code) return fmt::format("{} ({})", name.text, code);
  }
  return fmt::format("OpenCL error {}", code);
}

weir_status opencl_failure(cl_int code) noexcept {
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                      code == CL_INVALID_BUFFER_SIZE;
  return memory ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR;
}

void check_opencl(cl_int code, const std::string& what) {
  if (code == CL_SUCCESS) return;
  fail(opencl_failure(code), "{}: {}", what, opencl_error(code));
}

OpenClQueue make_opencl_queue(cl_context context, cl_device_id device, OpenClQueueKind kind) {
  cl_int code = CL_SUCCESS;
  const bool in_order = kind == OpenClQueueKind::in_order;
  cl_command_queue_properties properties = 0;
  if (kind != OpenClQueueKind::untimed) properties |= CL_QUEUE_PROFILING_ENABLE;
  if (!in_order) {
    properties |= opencl_fact<cl_command_queue_properties>(device, CL_DEVICE_QUEUE_PROPERTIES) &
                  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  }
  OpenClQueue queue(OpenClLibrary::get().clCreateCommandQueue(context, device, properties, &code));
  check_opencl(code, "no queue");
  return queue;
}

OpenClContext make_opencl_context(cl_platform_id platform, cl_device_id device) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int code = CL_SUCCESS;
  OpenClContext context(
      OpenClLibrary::get().clCreateContext(properties, 1, &device, nullptr, nullptr, &code));
  check_opencl(code, "no OpenCL context");
  return context;
}

cl_int opencl_status(cl_event event) noexcept {
  cl_int status = CL_COMPLETE;
  const cl_int code = OpenClLibrary::get().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                          sizeof status, &status, nullptr);
  return code == CL_SUCCESS ? status : code;
}

std::int64_t opencl_time(cl_event event, cl_profiling_info what) noexcept {
  cl_ulong time = 0;
  OpenClLibrary::get().clGetEventProfilingInfo(event, what, sizeof time, &time, nullptr);
  return static_cast<std::int64_t>(time);
}

std::optional<std::int64_t> opencl_clock_offset(cl_command_queue queue, cl_device_id device) {
  const OpenClLibrary& cl = OpenClLibrary::get();
  if (opencl_fact<std::size_t>(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION) == 0) {
    return std::nullopt;  // rusticl reports meaningless times
  }
  cl_event event = nullptr;
  check_opencl(cl.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "comparing clocks");
  const cl_int code = cl.clWaitForEvents(1, &event);
  const std::int64_t now = sys::now_ns(), ended = opencl_time(event, CL_PROFILING_COMMAND_END);
  cl.clReleaseEvent(event);
  check_opencl(code, "comparing clocks");
  return now - ended;
}

}  // namespace weir::rt
