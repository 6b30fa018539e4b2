// The buffers of a runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include <weir/buffer.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "core/buffer.hpp"
#include "stream/host_allocation.hpp"

namespace weir::rt {

class Context;
class Device;
class Domain;

/// Owns all buffers of a runtime and their host memory. No two of them overlap in host memory. Any
/// thread.
class BufferTable {
 public:
  explicit BufferTable(Context& context) noexcept : context_(context) {}
  BufferTable(const BufferTable&) = delete;
  BufferTable& operator=(const BufferTable&) = delete;

  // They throw Error.
  weir_buffer* create(std::size_t bytes, const weir_buffer_options& options);
  weir_buffer* wrap(void* address, std::size_t bytes, const weir_buffer_options& options);
  weir_buffer* adopt(Domain& domain, void* address, void* host, std::size_t bytes,
                     const weir_buffer_options& options);
  /// Creates a buffer in the memory of one device, without host memory, for internal use. The
  /// caller owns it.
  Owned<weir_buffer> make_device_buffer(std::size_t bytes);
  /// Destroys a buffer that no action uses; one that is not in the table stays.
  void free(weir_buffer& buffer) noexcept;
  /// Destroys all buffers. No action uses any.
  void clear() noexcept;

  weir_memory_kind kind_of(const weir_buffer& buffer) const;
  /// Throws Error{not_found} if no buffer holds the address.
  weir_buffer* find(const void* address, std::size_t& out_offset) const;

 private:
  struct OwnedBuffer {
    Owned<weir_buffer> buffer;
    HostAllocation memory;     ///< empty for wrapped memory
    Device* locker = nullptr;  ///< device that has page-locked it
  };

  weir_buffer* add(void* address, std::size_t bytes, HostAllocation memory,
                   const weir_buffer_options& options);
  void lock_host_memory(const weir_buffer& buffer) noexcept;
  static void unlock_host_memory(const OwnedBuffer& owned) noexcept;

  Context& context_;
  mutable sys::Mutex mutex_;
  /// By the end of their host memory.
  std::map<const std::byte*, OwnedBuffer> buffers_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t made_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rt
