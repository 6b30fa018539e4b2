// An OpenCL device: a processor, whose memory is the host's and which runs code of the host, or a
// card with a memory of its own.
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
  bool aliases = true;       ///< of processors: the host's memory is used as it is
};

/// Commands that depend on each other are ordered by weir, so all queues execute out of order.
class OpenClDevice final : public Device {
 public:
  /// The device runs native kernels, or compiles others. Throws Error.
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

  cl_context context() const noexcept { return context_.get(); }
  const OpenClCopies& copies() const noexcept { return copies_; }
  /// Returns which buffers the ends of a copy are to the driver.
  OpenClEnds ends_of(const CopyEnd& source, const CopyEnd& target) const;

 private:
  /// Returns the buffer that an allocation is, nullptr when there is none at this address.
  cl_mem buffer_at(const std::byte* base) const;
  bool is_card() const noexcept { return !facts_.native; }
  Memory allocate_on_card(std::size_t bytes);
  void add_buffer(const Memory& memory);

  DeviceInfo info_;
  const OpenClDeviceInfo facts_;
  const OpenClContext context_;
  OpenClCopies copies_;
  mutable sys::Mutex mutex_;
  std::map<const void*, OpenClBuffer> buffers_;  ///< by address
};

}  // namespace weir::rt
