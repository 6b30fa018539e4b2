// An OpenCL device: a processor, which uses host memory and runs host code, or a discrete device
// with its own memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_copies.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// An offset in a buffer of a driver.
struct OpenClLocation {
  cl_mem buffer = nullptr;
  std::uint64_t offset = 0;  ///< bytes
};

/// weir orders dependent commands, so all queues execute out of order where the driver supports it.
class OpenClDevice final : public Device {
 public:
  /// The device must run native kernels or compile kernels. `memory_bytes` are for instances; a
  /// processor with `aliases` uses host memory without copies. Throws Error.
  OpenClDevice(std::string name, std::uint64_t memory_bytes, bool aliases,
               const OpenClDeviceInfo& facts);

  const DeviceInfo& info() const noexcept override { return info_; }
  Memory allocate(std::size_t bytes) override;
  Memory adopt(void* address, std::size_t bytes) override;
  void release(Memory& memory) noexcept override;
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;

  cl_context context() const noexcept { return context_.get(); }
  const OpenClCopies& copies() const noexcept { return copies_; }
  /// Whether operands of its kernels are addresses; otherwise they are buffers, see
  /// find_opencl_buffer().
  bool shares_addresses() const noexcept { return facts_.shares_addresses; }
  /// Whether it has neither shared virtual memory nor uses that of the host.
  bool has_buffers_only() const noexcept { return is_discrete() && !shares_addresses(); }
  /// Returns the driver's buffers for the ends of a copy.
  OpenClEnds ends_of(const CopyEnd& source, const CopyEnd& target) const;

 private:
  /// Returns the buffer of an allocation, nullptr when there is none at this address.
  cl_mem buffer_at(const std::byte* base) const;
  bool is_discrete() const noexcept { return !facts_.native; }
  Memory allocate_shared(std::size_t bytes);
  void add_buffer(const Memory& memory);

  DeviceInfo info_;
  const OpenClDeviceInfo facts_;
  const OpenClContext context_;
  OpenClCopies copies_;
  mutable sys::Mutex mutex_;
  std::map<const void*, OpenClBuffer> buffers_ WEIR_GUARDED_BY(mutex_);  ///< by address
};

/// Returns the buffer and offset that an address represents on a device without shared virtual
/// memory; no buffer for any other address. Any thread.
OpenClLocation find_opencl_buffer(const void* address) noexcept;

}  // namespace weir::rt
