// The OpenCL devices of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/opencl_library.hpp"

namespace weir::rt {

/// Facts about one device.
struct OpenClDeviceInfo {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string description;        ///< device, platform and driver in words
  unsigned units = 0;             ///< compute units
  std::uint64_t memory = 0;       ///< bytes
  std::uint64_t allocation = 0;   ///< bytes of the largest
  bool native = false;            ///< runs host code on host memory
  bool compiles = false;          ///< compiles kernels
  bool shares_addresses = false;  ///< has shared virtual memory: kernels take addresses
  bool caches_kernels = false;    ///< its driver keeps compiled kernels: PoCL
  bool confuses_sizes = false;    ///< OpenClPrograms::prime() must come before a kernel: PoCL 3
};

/// Returns all devices of all platforms, in the order of the loader. Throws Error{unavailable} when
/// there is none.
std::vector<OpenClDeviceInfo> list_opencl_devices();

}  // namespace weir::rt
