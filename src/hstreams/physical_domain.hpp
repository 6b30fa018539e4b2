// The host, or a device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <weir/weir.hpp>

#include "hstreams/cpu_mask.hpp"
#include "hstreams/environment.hpp"

namespace weir::hs {

/// A weir domain with the hardware threads that the layer reports to programs.
struct PhysicalDomain {
  PhysicalDomain(HSTR_PHYS_DOM id, const weir::Domain& domain, const Environment& environment);

  /// Returns the cores that the threads of a mask map to: neighbouring threads share one when there
  /// are more threads than cores.
  std::vector<std::uint32_t> cores_of(const CpuMask& mask) const;
  bool is_host() const noexcept { return id < 0; }
  CpuMask usable() const { return max & ~avoid; }

  HSTR_PHYS_DOM id;
  weir_domain* domain;
  HSTR_ISA_TYPE isa;
  std::size_t cores;
  std::size_t threads;
  std::uint32_t mhz;
  std::uint64_t bytes;
  CpuMask max;
  CpuMask avoid;  ///< threads reserved for the device's system
};

/// The host and the devices of a session. Constant; the domains keep their addresses.
class PhysicalDomains {
 public:
  /// Takes at most `limit` devices of a runtime. Throws Error{DEVICE_NOT_INITIALIZED} if there are
  /// none.
  PhysicalDomains(const weir::Runtime& runtime, const Environment& environment,
                  std::uint32_t limit);

  const PhysicalDomain& host() const noexcept { return *host_; }
  const std::vector<PhysicalDomain>& devices() const noexcept { return devices_; }
  /// Returns the host or a device. Throws Error{DOMAIN_OUT_OF_RANGE}.
  const PhysicalDomain& at(HSTR_PHYS_DOM id) const;
  /// Whether a program sees no difference between the devices.
  bool homogeneous() const;

 private:
  std::vector<PhysicalDomain> devices_;
  std::optional<PhysicalDomain> host_;
};

}  // namespace weir::hs
