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
#include "net/port.hpp"

namespace weir::rt {

/// Code of a kernel for one device.
struct ServedKernel {
  Outcome missing;  ///< why there is none
  std::string name;
  weir_host_function function = nullptr;
  weir_cost_function cost = nullptr;
  void* payload = nullptr;
  const KernelSource* source = nullptr;
};

/// A device with the instances that rank 0 has made in it and the kernels that it calls there.
///
/// What rank 0 says of both comes in order, on the thread that makes progress, before the jobs that
/// need it. Addresses of messages are resolved there, too, and checked.
class ServedDevice {
 public:
  explicit ServedDevice(std::unique_ptr<Device> device);
  ServedDevice(const ServedDevice&) = delete;
  ServedDevice& operator=(const ServedDevice&) = delete;
  ~ServedDevice();

  Device& device() const noexcept { return *device_; }
  /// Whether the host, and so the network, uses its memory as it is.
  bool direct() const noexcept { return device_->info().aliases_host; }
  RankDeviceFacts facts() const { return {.info = device_->info(), .direct = direct()}; }

  void allocate(std::uint32_t instance, std::size_t bytes);
  void release(std::uint32_t instance) noexcept;
  void define(std::uint32_t number, ServedKernel kernel);

  /// Returns where an address of rank 0 is in the device's memory, if a region from there lies
  /// within its instance. Throws Error: network_error, or why the instance could not be allocated.
  std::byte* resolve(std::uint64_t address, const Region& region) const;
  /// Throws Error{network_error} for a number that was not defined.
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

/// An end of a copy as the rank that makes it knows it.
struct ServedEnd {
  ServedDevice* device = nullptr;  ///< null: far, in a window
  std::byte* base = nullptr;
  Rank rank = 0;
  WindowId window = 0;
  Region region;
};

/// Finds the device with a number that rank 0 has given. Throws Error.
using FindDevice = std::function<ServedDevice&(std::uint32_t)>;

/// Resolves an end of a copy. Throws Error as ServedDevice::resolve().
ServedEnd served_end(const RankCopyEnd& end, const FindDevice& find);

}  // namespace weir::rt
