#include "backends/opencl/opencl_memory.hpp"

#include "backend/host_memory.hpp"

namespace weir::rt {

namespace {

/// Maps addresses that represent buffers, of all devices, because a kernel does not know its
/// device.
class BufferAddresses {
 public:
  static BufferAddresses& get() {
    static auto& all = *new BufferAddresses;  // never destroyed: used until the process ends
    return all;
  }

  /// Throws std::bad_alloc.
  void add(const Memory& memory, cl_mem buffer) {
    const sys::Lock lock(mutex_);
    all_[memory.address] = {buffer, memory.bytes};
    count_.store(all_.size(), std::memory_order_release);
  }
  void remove(const Memory& memory) noexcept {
    const sys::Lock lock(mutex_);
    all_.erase(memory.address);
    count_.store(all_.size(), std::memory_order_release);
  }
  OpenClLocation find(const void* address) const noexcept {
    if (count_.load(std::memory_order_acquire) == 0) return {};
    const sys::Lock lock(mutex_);
    auto found = all_.upper_bound(address);
    if (found == all_.begin()) return {};
    const auto& [begin, known] = *--found;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) -
                                                   static_cast<const std::byte*>(begin));
    if (offset > known.bytes) return {};  // the end address is valid for an empty region
    return {known.buffer, offset};
  }

 private:
  struct Known {
    cl_mem buffer = nullptr;
    std::size_t bytes = 0;
  };
  mutable sys::Mutex mutex_;
  std::map<const void*, Known> all_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::size_t> count_{0};  ///< most programs have none
};

}  // namespace

OpenClLocation find_opencl_buffer(const void* address) noexcept {
  return BufferAddresses::get().find(address);
}

OpenClMemory::OpenClMemory(const Device& device, const std::string& domain,
                           const OpenClDeviceInfo& facts)
    : device_(device),
      domain_(domain),
      facts_(facts),
      context_(make_opencl_context(facts.platform, facts.id)),
      copies_(domain, make_opencl_queue(context_.get(), facts.id, OpenClQueueKind::untimed)) {}

Memory OpenClMemory::allocate(std::size_t bytes) {
  if (bytes > facts_.allocation) {
    fail(WEIR_STATUS_OUT_OF_MEMORY,
         "domain '{}' was asked for {} bytes at once, but its driver gives at most {}; use smaller "
         "buffers",
         domain_, bytes, facts_.allocation);
  }
  Memory memory = is_shared() ? allocate_shared(bytes) : allocate_host_memory(bytes, domain_);
  try {
    add_buffer(memory);
    if (is_discrete()) copies_.clear(buffer_at(static_cast<std::byte*>(memory.address)), bytes);
  } catch (...) {
    release(memory);
    throw;
  }
  return memory;
}

/// Shared virtual memory, so that kernels take addresses.
Memory OpenClMemory::allocate_shared(std::size_t bytes) {
  Memory memory{OpenClLibrary::get().clSVMAlloc(context_.get(), CL_MEM_READ_WRITE, bytes, 0),
                bytes};
  if (memory.address != nullptr) return memory;
  fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {} bytes, and its driver has none",
       domain_, bytes);
}

Memory OpenClMemory::adopt(void* address, std::size_t bytes) {
  const Memory memory{address, bytes, true};
  add_buffer(memory);
  return memory;
}

/// Wraps memory in a buffer of the driver, so that rectangles of it can be copied. Without shared
/// virtual memory the buffer has its own memory, and the addresses are never read or written.
void OpenClMemory::add_buffer(const Memory& memory) {
  const bool separate = has_buffers_only();
  cl_int code = CL_SUCCESS;
  OpenClBuffer buffer(OpenClLibrary::get().clCreateBuffer(
      context_.get(), separate ? CL_MEM_READ_WRITE : CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
      memory.bytes, separate ? nullptr : memory.address, &code));
  check_opencl(code, fmt::format("domain '{}' gives no {} bytes", domain_, memory.bytes));
  if (separate) BufferAddresses::get().add(memory, buffer.get());
  const sys::Lock lock(mutex_);
  buffers_.emplace(memory.address, std::move(buffer));
}

void OpenClMemory::release(Memory& memory) noexcept {
  {
    const sys::Lock lock(mutex_);
    buffers_.erase(memory.address);
  }
  if (is_discrete() && memory.address != nullptr) copies_.wait_until_cleared();
  if (is_shared()) {
    if (memory.address != nullptr) {
      OpenClLibrary::get().clSVMFree(context_.get(), memory.address);
    }
    memory = {};
    return;
  }
  if (is_discrete()) BufferAddresses::get().remove(memory);
  release_host_memory(memory);
}

cl_mem OpenClMemory::buffer_at(const std::byte* base) const {
  const sys::Lock lock(mutex_);
  const auto found = buffers_.find(base);
  return found == buffers_.end() ? nullptr : found->second.get();
}

/// Processors use host memory, so one end can always be passed as host memory.
OpenClEnds OpenClMemory::ends_of(const CopyEnd& source, const CopyEnd& target) const {
  OpenClEnds ends;
  if (target.device == &device_) ends.target = buffer_at(target.base);
  if (source.device == &device_ && (is_discrete() || target.device != &device_)) {
    ends.source = buffer_at(source.base);
  }
  return ends;
}

}  // namespace weir::rt
