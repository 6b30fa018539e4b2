#include "failing_opencl.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_layer.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

const cl_icd_dispatch* driver = nullptr;

std::mutex mutex;
std::map<std::string, int> failing;

/// A kernel's command that the driver has not got.
struct Broken {
  std::string until;
  cl_int code;
  cl_event event = nullptr;
  void(CL_CALLBACK* notify)(cl_event, cl_int, void*) = nullptr;
  void* data = nullptr;
};
std::optional<Broken> next;  // kernel
std::vector<Broken> broken;
unsigned failures = 0;

bool holds_fills = false;
cl_event gate = nullptr;  // what fills wait for

/// The code that a call is to fail with, or none.
std::optional<int> failure_of(const char* name) {
  const std::lock_guard lock(mutex);
  const auto found = failing.find(name);
  if (found == failing.end()) return std::nullopt;
  const int code = found->second;
  failing.erase(found);
  ++failures;
  return code;
}

/// Ends what is to end at a call.
void end_at(const char* name) {
  std::vector<Broken> ended;
  {
    const std::lock_guard lock(mutex);
    std::erase_if(broken, [&](const Broken& each) {
      if (each.until == name) ended.push_back(each);
      return each.until == name;
    });
    failures += static_cast<unsigned>(ended.size());
  }
  for (const Broken& each : ended) {
    driver->clSetUserEventStatus(each.event, each.code);
    if (each.notify != nullptr) each.notify(each.event, each.code, each.data);
    driver->clReleaseEvent(each.event);
  }
}

cl_context context_of(cl_command_queue queue) {
  cl_context context = nullptr;
  driver->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  return context;
}

cl_int CL_API_CALL set_event_callback(cl_event event, cl_int status,
                                      void(CL_CALLBACK* notify)(cl_event, cl_int, void*),
                                      void* data) {
  end_at("clSetEventCallback");
  if (const auto code = failure_of("clSetEventCallback")) return *code;
  {  // PoCL calls no callback when a user event fails
    const std::lock_guard lock(mutex);
    for (Broken& each : broken) {
      if (each.event != event) continue;
      each.notify = notify;
      each.data = data;
      return CL_SUCCESS;
    }
  }
  return driver->clSetEventCallback(event, status, notify, data);
}

cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  if (const auto code = failure_of("clBuildProgram")) return *code;
  return driver->clBuildProgram(program, count, devices, options, notify, data);
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const size_t* offset, const size_t* items, const size_t* group,
                                  cl_uint wait_count, const cl_event* waits, cl_event* event) {
  end_at("clEnqueueNDRangeKernel");
  const std::lock_guard lock(mutex);
  std::size_t groups = 1;  // modulo 2^64: 0 of OpenClPrograms::prime(), which no driver fails
  for (cl_uint i = 0; i < dimensions; ++i) groups *= group == nullptr ? 1 : items[i] / group[i];
  if (!next || event == nullptr || groups == 0) {
    return driver->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, items, group,
                                          wait_count, waits, event);
  }
  cl_int code = CL_SUCCESS;
  next->event = *event = driver->clCreateUserEvent(context_of(queue), &code);
  if (code != CL_SUCCESS) return code;
  driver->clRetainEvent(*event);
  broken.push_back(*std::exchange(next, std::nullopt));
  return CL_SUCCESS;
}

cl_int CL_API_CALL enqueue_native(cl_command_queue queue, void(CL_CALLBACK* function)(void*),
                                  void* arguments, size_t bytes, cl_uint buffer_count,
                                  const cl_mem* buffers, const void** addresses, cl_uint wait_count,
                                  const cl_event* waits, cl_event* event) {
  end_at("clEnqueueNativeKernel");
  return driver->clEnqueueNativeKernel(queue, function, arguments, bytes, buffer_count, buffers,
                                       addresses, wait_count, waits, event);
}

cl_int CL_API_CALL enqueue_marker(cl_command_queue queue, cl_uint wait_count, const cl_event* waits,
                                  cl_event* event) {
  end_at("clEnqueueMarkerWithWaitList");
  return driver->clEnqueueMarkerWithWaitList(queue, wait_count, waits, event);
}

cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                               size_t pattern_bytes, size_t offset, size_t bytes,
                               cl_uint wait_count, const cl_event* waits, cl_event* event) {
  const std::lock_guard lock(mutex);
  std::vector<cl_event> all(waits, waits + wait_count);
  cl_int code = CL_SUCCESS;
  if (holds_fills && gate == nullptr) gate = driver->clCreateUserEvent(context_of(queue), &code);
  if (code != CL_SUCCESS) return code;
  if (gate != nullptr) all.push_back(gate);
  return driver->clEnqueueFillBuffer(queue, buffer, pattern, pattern_bytes, offset, bytes,
                                     static_cast<cl_uint>(all.size()),
                                     all.empty() ? nullptr : all.data(), event);
}

cl_int CL_API_CALL flush(cl_command_queue queue) {
  end_at("clFlush");
  return driver->clFlush(queue);
}

}  // namespace

void failing_opencl_end_launch(const char* until, int code) {
  const std::lock_guard lock(mutex);
  next = Broken{until, code};
}

void failing_opencl_fail(const char* name, int code) {
  const std::lock_guard lock(mutex);
  failing[name] = code;
}

void failing_opencl_hold_fills(int held) {
  cl_event opened = nullptr;
  {
    const std::lock_guard lock(mutex);
    holds_fills = held != 0;
    if (!holds_fills) opened = std::exchange(gate, nullptr);
  }
  if (opened == nullptr) return;
  driver->clSetUserEventStatus(opened, CL_COMPLETE);
  driver->clReleaseEvent(opened);
}

unsigned failing_opencl_failures(void) {
  const std::lock_guard lock(mutex);
  return failures;
}

extern "C" cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t bytes, void* value,
                                             size_t* out_bytes) {
  constexpr cl_layer_api_version kVersion = CL_LAYER_API_VERSION_100;
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value != nullptr && bytes < sizeof kVersion) return CL_INVALID_VALUE;
  if (value != nullptr) *static_cast<cl_layer_api_version*>(value) = kVersion;
  if (out_bytes != nullptr) *out_bytes = sizeof kVersion;
  return CL_SUCCESS;
}

extern "C" cl_int CL_API_CALL clInitLayer(cl_uint, const cl_icd_dispatch* below, cl_uint* out_count,
                                          const cl_icd_dispatch** out_layer) {
  static cl_icd_dispatch layer{};
  driver = below;
  layer.clSetEventCallback = set_event_callback;
  layer.clBuildProgram = build_program;
  layer.clEnqueueNDRangeKernel = enqueue_kernel;
  layer.clEnqueueNativeKernel = enqueue_native;
  layer.clEnqueueMarkerWithWaitList = enqueue_marker;
  layer.clEnqueueFillBuffer = fill_buffer;
  layer.clFlush = flush;
  *out_count = sizeof layer / sizeof(void*);
  *out_layer = &layer;
  return CL_SUCCESS;
}
