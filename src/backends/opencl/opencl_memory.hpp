// Memory of an OpenCL device: that of the host on a processor, its own on a discrete device.
#pragma once

#include <map>
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

/// Returns the buffer and offset that an address represents on a device without shared virtual
/// memory; no buffer for any other address. Any thread.
OpenClLocation find_opencl_buffer(const void* address) noexcept;

/// The context of a device, its allocations, and the copies that no place orders. Any thread.
class OpenClMemory {
 public:
  /// For the device of that domain. Throws Error.
  OpenClMemory(const Device& device, const std::string& domain, const OpenClDeviceInfo& facts);

  const OpenClDeviceInfo& facts() const noexcept { return facts_; }
  cl_context context() const noexcept { return context_.get(); }
  const OpenClCopies& copies() const noexcept { return copies_; }
  /// Whether it has neither shared virtual memory nor uses that of the host: then operands of
  /// kernels are not addresses but buffers, see find_opencl_buffer().
  bool has_buffers_only() const noexcept { return is_discrete() && !facts_.shares_addresses; }

  // The functions of Device; adopt() on a processor only.
  Memory allocate(std::size_t bytes);
  Memory adopt(void* address, std::size_t bytes);
  void release(Memory& memory) noexcept;
  void copy(const CopyJob& job) noexcept { copies_.start(job, ends_of(job.source, job.target)); }

  /// Returns the driver's buffers for the ends of a copy.
  OpenClEnds ends_of(const CopyEnd& source, const CopyEnd& target) const;

 private:
  /// Returns the buffer of the allocation at this address, nullptr for any other address.
  cl_mem buffer_at(const std::byte* base) const;
  bool is_discrete() const noexcept { return !facts_.native; }
  bool is_shared() const noexcept { return is_discrete() && facts_.shares_addresses; }
  Memory allocate_shared(std::size_t bytes);
  void add_buffer(const Memory& memory);

  const Device& device_;
  const std::string domain_;
  const OpenClDeviceInfo facts_;
  const OpenClContext context_;
  OpenClCopies copies_;
  mutable sys::Mutex mutex_;
  std::map<const void*, OpenClBuffer> buffers_ WEIR_GUARDED_BY(mutex_);  ///< by address
};

}  // namespace weir::rt
