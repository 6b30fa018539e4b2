#include "backends/opencl/opencl_platforms.hpp"

namespace weir::rt {

namespace {

/// Returns the text of get(bytes, address, out_bytes), without blanks at its ends.
template <class Get>
std::string text_of(Get&& get) {
  std::size_t bytes = 0;
  if (get(std::size_t{0}, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  const std::size_t begin = text.find_first_not_of(' ');
  const std::size_t end = text.find_last_not_of(std::string_view(" \0", 2));
  return end == std::string::npos || begin > end ? "" : text.substr(begin, end - begin + 1);
}
std::string device_text(cl_device_id device, cl_device_info what) {
  return text_of([&](std::size_t bytes, void* address, std::size_t* out_bytes) {
    return OpenClLibrary::get().clGetDeviceInfo(device, what, bytes, address, out_bytes);
  });
}
std::string platform_name(cl_platform_id platform) {
  return text_of([&](std::size_t bytes, void* address, std::size_t* out_bytes) {
    return OpenClLibrary::get().clGetPlatformInfo(platform, CL_PLATFORM_NAME, bytes, address,
                                                  out_bytes);
  });
}

OpenClDeviceInfo info_of(cl_platform_id platform, cl_device_id id) {
  OpenClDeviceInfo info;
  info.platform = platform;
  info.id = id;
  const std::string name = device_text(id, CL_DEVICE_NAME), of = platform_name(platform),
                    version = device_text(id, CL_DRIVER_VERSION);
  info.description = fmt::format("{} ({}, driver {})", name, of, version);
  info.caches_kernels = of == "Portable Computing Language";
  info.confuses_sizes =
      info.caches_kernels && version.starts_with("3.") && name.starts_with("pthread-");
  info.units = opencl_fact<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.memory = opencl_fact<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.allocation = opencl_fact<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  const auto type = opencl_fact<cl_device_type>(id, CL_DEVICE_TYPE);
  const auto runs = opencl_fact<cl_device_exec_capabilities>(id, CL_DEVICE_EXECUTION_CAPABILITIES);
  info.native = (type & CL_DEVICE_TYPE_CPU) != 0 && (runs & CL_EXEC_NATIVE_KERNEL) != 0;
  const OpenClLibrary& cl = OpenClLibrary::get();
  info.shares_addresses = opencl_fact<cl_bitfield>(id, CL_DEVICE_SVM_CAPABILITIES) != 0 &&
                          cl.clSetKernelArgSVMPointer != nullptr && cl.clSVMAlloc != nullptr &&
                          cl.clSVMFree != nullptr;
  info.compiles = opencl_fact<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) != 0;
  return info;
}

}  // namespace

std::vector<OpenClDeviceInfo> list_opencl_devices() {
  const OpenClLibrary& cl = OpenClLibrary::get();
  cl_uint count = 0;
  if (cl.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "OpenCL has no driver on this machine: install one (Debian, for processors: "
         "pocl-opencl-icd)");
  }
  std::vector<cl_platform_id> platforms(count);
  check_opencl(cl.clGetPlatformIDs(count, platforms.data(), nullptr), "listing OpenCL's platforms");
  std::vector<OpenClDeviceInfo> devices;
  for (cl_platform_id platform : platforms) {
    count = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    check_opencl(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr),
                 "listing OpenCL's devices");
    for (cl_device_id id : ids) devices.push_back(info_of(platform, id));
  }
  if (devices.empty()) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "OpenCL's drivers find no device; PoCL needs a folder that it can write to: HOME, or "
         "POCL_CACHE_DIR");
  }
  return devices;
}

}  // namespace weir::rt
