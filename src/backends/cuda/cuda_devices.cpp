#include "backends/cuda/cuda_devices.hpp"

#include <algorithm>
#include <array>

namespace weir::rt {

namespace {

unsigned attribute(CUdevice device, CUdevice_attribute what) noexcept {
  int value = 0;
  CudaLibrary::get().cuDeviceGetAttribute(&value, what, device);
  return static_cast<unsigned>(std::max(value, 0));
}

std::string name_of(CUdevice device) {
  std::array<char, 256> name{};
  CudaLibrary::get().cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device);
  return name.data();
}

CudaDeviceInfo info_of(CUdevice device, int version) {
  CudaDeviceInfo info;
  info.id = device;
  const unsigned major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const unsigned minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.description =
      fmt::format("{} (compute capability {}.{}, driver for CUDA {}.{})", name_of(device), major,
                  minor, version / 1000, version % 1000 / 10);
  info.architecture = 10 * major + minor;
  info.processors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.has_pools = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  info.writes_values = attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
  return info;
}

}  // namespace

std::vector<CudaDeviceInfo> list_cuda_devices() {
  const CudaLibrary& cu = CudaLibrary::get();
  int count = 0, version = 0;
  check_cuda(cu.cuDeviceGetCount(&count), "counting CUDA's devices");
  check_cuda(cu.cuDriverGetVersion(&version), "asking for the CUDA driver's version");
  if (count == 0) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "the CUDA driver finds no device; CUDA_VISIBLE_DEVICES can hide them");
  }
  std::vector<CudaDeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    check_cuda(cu.cuDeviceGet(&device, i), "listing CUDA's devices");
    devices.push_back(info_of(device, version));
  }
  return devices;
}

std::vector<CUdevResource> divide_cuda_device(CUdevice device) {
  const CudaLibrary& cu = CudaLibrary::get();
  CUdevResource all{}, rest{};
  if (cu.cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) return {};
  const unsigned least = std::max({1u, all.sm.minSmPartitionSize, all.sm.smCoscheduledAlignment});
  unsigned count = all.sm.smCount / least;
  std::vector<CUdevResource> groups(count);
  const CUresult code =
      cu.cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, 0, least);
  groups.resize(code == CUDA_SUCCESS ? count : 0);
  return groups;
}

}  // namespace weir::rt
