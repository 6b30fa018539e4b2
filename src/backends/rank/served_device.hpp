// A device that this rank serves to rank 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_wire.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Code of a kernel for one device.
struct ServedKernel {
  Outcome missing;  ///< why the kernel has no code for the device
  std::string name;
  weir_host_function function = nullptr;
  weir_cost_function cost = nullptr;
  void* payload = nullptr;
  const KernelSource* source = nullptr;
};

/// A device with the instances that rank 0 has created in it and the kernels that rank 0 calls.
///
/// Messages about instances and kernels arrive in order on the thread that makes progress, before
/// the jobs that need them. That thread also resolves and checks the addresses in messages.
class ServedDevice {
 public:
  explicit ServedDevice(std::unique_ptr<Device> device);
  ServedDevice(const ServedDevice&) = delete;
  ServedDevice& operator=(const ServedDevice&) = delete;
  ~ServedDevice();

  Device& device() const noexcept { return *device_; }
  /// Returns whether the host, and therefore the network, accesses its memory directly.
  bool direct() const noexcept { return device_->info().aliases_host; }
  RankDeviceFacts facts() const { return {.info = device_->info(), .direct = direct()}; }

  void allocate(std::uint32_t instance, std::size_t bytes);
  void release(std::uint32_t instance) noexcept;
  void define(std::uint32_t number, ServedKernel kernel);

  /// Converts an address of rank 0 to one in the device's memory, if a region from there lies
  /// within its instance. Throws Error: network_error, or why the instance could not be allocated.
  std::byte* resolve(std::uint64_t address, const Region& region) const;
  /// Throws Error{network_error} for an undefined number.
  const ServedKernel& kernel(std::uint32_t number) const;

 private:
  struct Instance {
    Memory memory;
    Outcome missing;  ///< why it has no memory
  };

  const std::unique_ptr<Device> device_;
  std::unordered_map<std::uint32_t, Instance> instances_;
  std::unordered_map<std::uint32_t, std::unique_ptr<const ServedKernel>> kernels_;
};

/// An end of a copy on the rank that makes it.
struct ServedEnd {
  ServedDevice* device = nullptr;  ///< null: far, in a window
  std::byte* base = nullptr;
  Rank rank = 0;
  WindowId window = 0;
  Region region;
};

/// Finds the device with a number assigned by rank 0. Throws Error.
using FindDevice = std::function<ServedDevice&(std::uint32_t)>;

/// Resolves an end of a copy. Throws Error like ServedDevice::resolve().
ServedEnd served_end(const RankCopyEnd& end, const FindDevice& find);

}  // namespace weir::rt
