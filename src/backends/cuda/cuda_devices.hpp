// The CUDA devices of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/cuda_library.hpp"

namespace weir::rt {

/// Facts about one device.
struct CudaDeviceInfo {
  CUdevice id = 0;
  std::string description;     ///< name, architecture and driver in words
  unsigned architecture = 0;   ///< 90 for compute capability 9.0
  unsigned processors = 0;     ///< streaming multiprocessors
  bool has_pools = false;      ///< allocates in the order of streams
  bool writes_values = false;  ///< writes numbers to the host in the order of streams
};

/// Returns all devices in the order of the driver. Throws Error{unavailable} when there is none.
std::vector<CudaDeviceInfo> list_cuda_devices();

/// Returns the groups of multiprocessors from which green contexts can be created, all of one
/// division; empty for a device that cannot be divided.
std::vector<CUdevResource> divide_cuda_device(CUdevice device);

}  // namespace weir::rt
