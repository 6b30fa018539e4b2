#include "backends/rank/served_device.hpp"

#include <utility>

#include "backend/host_memory.hpp"

namespace weir::rt {

namespace {

/// Returns whether a region lies within `bytes` bytes, without overflow for any values.
bool fits(const Region& region, std::uint64_t bytes) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide end = Wide{region.offset} + Wide{region.planes - 1u} * region.plane_stride +
                   Wide{region.rows - 1u} * region.row_stride + region.row;
  return end <= bytes;
}

}  // namespace

ServedDevice::ServedDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

ServedDevice::~ServedDevice() {
  while (!instances_.empty()) release(instances_.begin()->first);
}

void ServedDevice::allocate(std::uint32_t instance, std::size_t bytes) {
  Instance& made = instances_[instance];
  if (made.memory.address != nullptr) WireReader::refuse("it allocates an instance again");
  try {
    made.memory =
        direct() ? allocate_host_memory(bytes, device_->info().name) : device_->allocate(bytes);
    made.missing = {};
  } catch (...) {
    made.missing = current_exception_outcome(WEIR_STATUS_OUT_OF_MEMORY);
  }
}

void ServedDevice::release(std::uint32_t instance) noexcept {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  Memory& memory = found->second.memory;
  if (direct()) {
    release_host_memory(memory);
  } else if (memory.address != nullptr) {
    device_->release(memory);
  }
  instances_.erase(found);
}

void ServedDevice::define(std::uint32_t number, ServedKernel kernel) {
  kernels_[number] = std::make_unique<const ServedKernel>(std::move(kernel));
}

std::byte* ServedDevice::resolve(std::uint64_t address, const Region& region) const {
  const auto found = instances_.find(rank_address::instance(address));
  if (found == instances_.end()) WireReader::refuse("it uses an instance that is not there");
  const Instance& instance = found->second;
  if (!instance.missing.ok()) throw Error(instance.missing.status, instance.missing.message);
  const std::uint64_t offset = rank_address::offset(address);
  const std::uint64_t bytes = instance.memory.bytes;
  if (offset > bytes || !fits(region, bytes - offset)) {
    WireReader::refuse("it uses bytes beyond the end of an instance");
  }
  return static_cast<std::byte*>(instance.memory.address) + offset;
}

const ServedKernel& ServedDevice::kernel(std::uint32_t number) const {
  const auto found = kernels_.find(number);
  if (found == kernels_.end()) WireReader::refuse("it calls a kernel that was not defined");
  return *found->second;
}

ServedEnd served_end(const RankCopyEnd& end, const FindDevice& find) {
  ServedEnd served;
  served.region = end.region;
  if (end.remote) {
    served.rank = end.rank;
    served.window = end.window;
  } else {
    served.device = &find(end.device);
    served.base = served.device->resolve(end.address, end.region);
  }
  return served;
}

}  // namespace weir::rt
