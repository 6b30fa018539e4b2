#include "backends/opencl/opencl_device.hpp"

#include "backend/host_memory.hpp"
#include "backends/opencl/opencl_place.hpp"

namespace weir::rt {

OpenClDevice::OpenClDevice(OpenClOptions options, const OpenClDeviceInfo& facts)
    : facts_(facts),
      context_(make_opencl_context(facts.platform, facts.id)),
      copies_(options.name, make_opencl_queue(context_.get(), facts.id, OpenClQueueKind::timed)) {
  info_.name = std::move(options.name);
  info_.backend = "opencl";
  info_.description = facts.description;
  info_.cores = facts.native ? facts.units : 1;
  info_.memory_bytes = options.memory;
  info_.aliases_host = facts.native && options.aliases;
  info_.runs_host_code = facts.native;
  info_.orders_jobs = true;
  info_.compiles_source = facts.compiles;
}

OpenClDevice::~OpenClDevice() = default;

Memory OpenClDevice::allocate(std::size_t bytes) {
  if (bytes > facts_.allocation) {
    fail(WEIR_STATUS_OUT_OF_MEMORY,
         "domain '{}' was asked for {} bytes at once, but its driver gives at most {}; use smaller "
         "buffers",
         info_.name, bytes, facts_.allocation);
  }
  if (is_card()) return allocate_on_card(bytes);
  Memory memory = allocate_host_memory(bytes, info_.name);
  try {
    add_buffer(memory);
  } catch (...) {
    release_host_memory(memory);
    throw;
  }
  return memory;
}

/// Shared virtual memory, so that kernels take addresses in it, which a buffer is made of, so that
/// tiles can be copied.
Memory OpenClDevice::allocate_on_card(std::size_t bytes) {
  const OpenClLibrary& cl = OpenClLibrary::get();
  Memory memory{cl.clSVMAlloc(context_.get(), CL_MEM_READ_WRITE, bytes, 0), bytes};
  if (memory.address == nullptr) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {} bytes, and its driver has none",
         info_.name, bytes);
  }
  try {
    add_buffer(memory);
    copies_.clear(buffer_at(static_cast<const std::byte*>(memory.address)), bytes);
  } catch (...) {
    release(memory);
    throw;
  }
  return memory;
}

Memory OpenClDevice::adopt(void* address, std::size_t bytes) {
  if (is_card()) return Device::adopt(address, bytes);
  const Memory memory{address, bytes, true};
  add_buffer(memory);
  return memory;
}

/// Makes memory of the host known to the driver.
void OpenClDevice::add_buffer(const Memory& memory) {
  cl_int code = CL_SUCCESS;
  OpenClBuffer buffer(OpenClLibrary::get().clCreateBuffer(context_.get(),
                                                          CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                                          memory.bytes, memory.address, &code));
  check_opencl(code, fmt::format("domain '{}' gives no {} bytes", info_.name, memory.bytes));
  const sys::Lock lock(mutex_);
  buffers_.emplace(memory.address, std::move(buffer));
}

void OpenClDevice::release(Memory& memory) noexcept {
  {
    const sys::Lock lock(mutex_);
    buffers_.erase(memory.address);
  }
  if (!is_card()) return release_host_memory(memory);
  if (memory.address != nullptr) {
    copies_.settle();
    OpenClLibrary::get().clSVMFree(context_.get(), memory.address);
  }
  memory = {};
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

/// The memory of processors is the host's, so one end can always be taken as that.
OpenClEnds OpenClDevice::ends_of(const CopyEnd& source, const CopyEnd& target) const {
  OpenClEnds ends;
  if (target.device == this) ends.target = buffer_at(target.base);
  if (source.device == this && (is_card() || target.device != this)) {
    ends.source = buffer_at(source.base);
  }
  return ends;
}

void OpenClDevice::copy(const CopyJob& job) noexcept {
  copies_.start(job, ends_of(job.source, job.target));
}

std::unique_ptr<PlaceDriver> OpenClDevice::open_place(const PlaceRequest& request,
                                                      PlaceFeed& feed) {
  return std::make_unique<OpenClPlace>(request, facts_, is_card() ? this : nullptr, feed);
}

std::int64_t OpenClDevice::now_ns() const noexcept { return sys::now_ns(); }

}  // namespace weir::rt
