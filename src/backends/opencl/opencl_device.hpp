// A processor as an OpenCL device: its memory is the host's, its kernels are code of the host.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_copies.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "base/threads.hpp"

namespace weir::rt {

struct OpenClOptions {
  std::string name;
  std::uint64_t memory = 0;  ///< bytes for instances
  bool aliases = true;       ///< the host's memory is used as it is
};

/// Commands that depend on each other are ordered by weir, so all queues execute out of order.
class OpenClDevice final : public Device {
 public:
  /// The device runs native kernels. Throws Error.
  OpenClDevice(OpenClOptions options, const OpenClDeviceInfo& facts);
  ~OpenClDevice() override;

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override;
  Memory adopt(void* address, std::size_t bytes) override;
  void release(Memory& memory) noexcept override;
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;
  std::int64_t now_ns() const noexcept override;
  bool drive() noexcept override { return false; }

 private:
  void add_buffer(const Memory& memory);
  cl_mem buffer_at(const std::byte* base) const;

  DeviceInfo info_;
  const OpenClDeviceInfo facts_;
  const OpenClContext context_;
  OpenClCopies copies_;
  mutable sys::Mutex mutex_;
  std::map<const void*, OpenClBuffer> buffers_;  ///< by address of their host memory
};

}  // namespace weir::rt
