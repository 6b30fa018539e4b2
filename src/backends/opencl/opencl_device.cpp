#include "backends/opencl/opencl_device.hpp"

#include "backend/host_memory.hpp"
#include "backends/opencl/opencl_place.hpp"

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

OpenClDevice::OpenClDevice(std::string name, std::uint64_t memory_bytes, bool aliases,
                           const OpenClDeviceInfo& facts)
    : facts_(facts),
      context_(make_opencl_context(facts.platform, facts.id)),
      copies_(name, make_opencl_queue(context_.get(), facts.id, OpenClQueueKind::untimed)) {
  info_.name = std::move(name);
  info_.backend = "opencl";
  info_.description = facts.description;
  info_.cores = facts.native ? facts.units : 1;
  info_.memory_bytes = memory_bytes;
  info_.aliases_host = facts.native && aliases;
  info_.runs_host_code = facts.native;
  info_.resolves_dependences = true;
  info_.compiles_source = facts.compiles && (facts.shares_addresses || !facts.native);
}

Memory OpenClDevice::allocate(std::size_t bytes) {
  if (bytes > facts_.allocation) {
    fail(WEIR_STATUS_OUT_OF_MEMORY,
         "domain '{}' was asked for {} bytes at once, but its driver gives at most {}; use smaller "
         "buffers",
         info_.name, bytes, facts_.allocation);
  }
  const bool shared = is_discrete() && shares_addresses();
  Memory memory = shared ? allocate_shared(bytes) : allocate_host_memory(bytes, info_.name);
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
Memory OpenClDevice::allocate_shared(std::size_t bytes) {
  Memory memory{OpenClLibrary::get().clSVMAlloc(context_.get(), CL_MEM_READ_WRITE, bytes, 0),
                bytes};
  if (memory.address != nullptr) return memory;
  fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {} bytes, and its driver has none",
       info_.name, bytes);
}

Memory OpenClDevice::adopt(void* address, std::size_t bytes) {
  if (is_discrete()) return Device::adopt(address, bytes);
  const Memory memory{address, bytes, true};
  add_buffer(memory);
  return memory;
}

/// Wraps memory in a buffer of the driver, so that rectangles of it can be copied. Without shared
/// virtual memory the buffer has its own memory, and the addresses are never read or written.
void OpenClDevice::add_buffer(const Memory& memory) {
  const bool separate = has_buffers_only();
  cl_int code = CL_SUCCESS;
  OpenClBuffer buffer(OpenClLibrary::get().clCreateBuffer(
      context_.get(), separate ? CL_MEM_READ_WRITE : CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
      memory.bytes, separate ? nullptr : memory.address, &code));
  check_opencl(code, fmt::format("domain '{}' gives no {} bytes", info_.name, memory.bytes));
  if (separate) BufferAddresses::get().add(memory, buffer.get());
  const sys::Lock lock(mutex_);
  buffers_.emplace(memory.address, std::move(buffer));
}

void OpenClDevice::release(Memory& memory) noexcept {
  {
    const sys::Lock lock(mutex_);
    buffers_.erase(memory.address);
  }
  if (is_discrete() && memory.address != nullptr) copies_.wait_until_cleared();
  if (is_discrete() && shares_addresses()) {
    if (memory.address != nullptr) {
      OpenClLibrary::get().clSVMFree(context_.get(), memory.address);
    }
    memory = {};
    return;
  }
  if (is_discrete()) BufferAddresses::get().remove(memory);
  release_host_memory(memory);
}

bool OpenClDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr || peer == this) return true;
  return info_.runs_host_code && peer->info().backend == info_.backend &&
         peer->info().runs_host_code;
}

cl_mem OpenClDevice::buffer_at(const std::byte* base) const {
  const sys::Lock lock(mutex_);
  const auto found = buffers_.find(base);
  return found == buffers_.end() ? nullptr : found->second.get();
}

/// Processors use host memory, so one end can always be passed as host memory.
OpenClEnds OpenClDevice::ends_of(const CopyEnd& source, const CopyEnd& target) const {
  OpenClEnds ends;
  if (target.device == this) ends.target = buffer_at(target.base);
  if (source.device == this && (is_discrete() || target.device != this)) {
    ends.source = buffer_at(source.base);
  }
  return ends;
}

void OpenClDevice::copy(const CopyJob& job) noexcept {
  copies_.start(job, ends_of(job.source, job.target));
}

std::unique_ptr<PlaceDriver> OpenClDevice::open_place(const PlaceRequest& request,
                                                      PlaceFeed& feed) {
  return is_discrete() ? open_gpu_opencl_place(request, facts_, *this, feed)
                       : open_native_opencl_place(request, facts_, feed);
}

}  // namespace weir::rt
