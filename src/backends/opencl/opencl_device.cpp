#include "backends/opencl/opencl_device.hpp"

#include <utility>

#include "backends/opencl/opencl_place.hpp"

namespace weir::rt {

OpenClDevice::OpenClDevice(std::string name, std::uint64_t memory_bytes, bool aliases,
                           const OpenClDeviceInfo& facts)
    : memory_(*this, name, facts) {
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

Memory OpenClDevice::adopt(void* address, std::size_t bytes) {
  return info_.runs_host_code ? memory_.adopt(address, bytes) : Device::adopt(address, bytes);
}

bool OpenClDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr || peer == this) return true;
  return info_.runs_host_code && peer->info().backend == info_.backend &&
         peer->info().runs_host_code;
}

std::unique_ptr<PlaceDriver> OpenClDevice::open_place(const PlaceRequest& request,
                                                      PlaceFeed& feed) {
  return info_.runs_host_code ? open_native_opencl_place(request, memory_.facts(), feed)
                              : open_gpu_opencl_place(request, memory_, feed);
}

}  // namespace weir::rt
