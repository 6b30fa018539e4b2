// A CUDA device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_copy_thread.hpp"
#include "backends/cuda/cuda_devices.hpp"
#include "backends/cuda/cuda_kernels.hpp"

namespace weir::rt {

struct CudaOptions {
  std::string name;
  std::uint64_t memory = 0;      ///< bytes for instances, 0: nearly all that is free
  unsigned compute_streams = 4;  ///< streams for kernels in a place
  unsigned packers = 0;          ///< helper threads that pack staged copies
};

/// Its cores are the groups of multiprocessors into which it can be divided.
class CudaDevice final : public Device {
 public:
  /// Throws Error.
  CudaDevice(CudaOptions options, const CudaDeviceInfo& facts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  Memory adopt(void* address, std::size_t bytes) override { return memory_.adopt(address, bytes); }
  bool pin_host(void* address, std::size_t bytes) noexcept override {
    return lock_cuda_host(context_, address, bytes);
  }
  void unpin_host(void* address) noexcept override { unlock_cuda_host(context_, address); }
  void release(Memory& memory) noexcept override { memory_.release(memory); }
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;

 private:
  const CudaOptions options_;
  DeviceInfo info_;
  const CudaDeviceInfo facts_;
  CudaContext context_;
  const std::vector<CUdevResource> groups_;
  CudaMemory memory_;
  CudaKernels kernels_;
  CudaCopyThread inward_, outward_;
};

}  // namespace weir::rt
