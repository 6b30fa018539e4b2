// An OpenCL device: a processor, which uses host memory and runs host code, or a discrete device
// with its own memory.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_memory.hpp"
#include "backends/opencl/opencl_platforms.hpp"

namespace weir::rt {

/// weir orders dependent commands, so all queues execute out of order where the driver supports it.
class OpenClDevice final : public Device {
 public:
  /// The device must run native kernels or compile kernels. `memory_bytes` are for instances; a
  /// processor with `aliases` uses host memory without copies. Throws Error.
  OpenClDevice(std::string name, std::uint64_t memory_bytes, bool aliases,
               const OpenClDeviceInfo& facts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  Memory adopt(void* address, std::size_t bytes) override;
  void release(Memory& memory) noexcept override { memory_.release(memory); }
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override { memory_.copy(job); }
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;

 private:
  DeviceInfo info_;
  OpenClMemory memory_;
};

}  // namespace weir::rt
