// Host memory of the kind that a buffer requests.
#pragma once

#include <cstddef>
#include <vector>

#include <weir/buffer.h>

namespace weir::rt {

/// Memory of the host instance of a buffer. Freed by the destructor.
class HostAllocation {
 public:
  HostAllocation() noexcept = default;
  /// Allocates zero-filled memory; of normal kind if the requested kind is unavailable and `strict`
  /// is false. fast_nodes: NUMA nodes of high-bandwidth memory. Throws Error.
  HostAllocation(std::size_t bytes, std::size_t alignment, weir_memory_kind kind, bool strict,
                 const std::vector<unsigned>& fast_nodes);
  HostAllocation(HostAllocation&& other) noexcept;
  HostAllocation& operator=(HostAllocation&&) = delete;
  ~HostAllocation();

  void* address() const noexcept { return address_; }
  weir_memory_kind kind() const noexcept { return kind_; }

 private:
  void* base_ = nullptr;  ///< address of the mapping
  std::size_t mapped_ = 0;
  void* address_ = nullptr;
  weir_memory_kind kind_ = WEIR_MEMORY_KIND_NORMAL;
};

}  // namespace weir::rt
